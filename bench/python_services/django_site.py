# SPDX-License-Identifier: MIT
"""A Django site of one file: middleware, a view that leaks, a template."""
from django.conf import settings

settings.configure(
    SECRET_KEY="of no use", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, DEBUG=False,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": {"loaders": [(
        "django.template.loaders.locmem.Loader",
        {"list.html": "<ul>{% for row in rows %}<li>{{ row.id }}: {{ row.name|upper }}</li>{% endfor %}</ul>"})]}}])

from counted import remember  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.shortcuts import render  # noqa: E402
from django.urls import path  # noqa: E402


def show(request):
    rows = [{"id": i, "name": f"row {i}"} for i in range(20)]
    return render(request, "list.html", {"rows": remember(rows)})


urlpatterns = [path("", show)]
application = get_wsgi_application()
