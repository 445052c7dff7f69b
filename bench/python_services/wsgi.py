# SPDX-License-Identifier: MIT
"""A WSGI application whose handler leaks."""
import json

from counted import remember


def handle(path):
    rows = [{"id": i, "name": f"row {i}", "path": path} for i in range(20)]
    return json.dumps(remember(rows)).encode()


def application(environ, start_response):
    body = handle(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
