# SPDX-License-Identifier: MIT
"""HTML reports as a browser shows them: headless Chromium, where it is installed."""
import html
import os
import re
import shutil
import subprocess

PATIENCE = 120
CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Shown:
    """The page of a file as a browser has it with this fragment, after its scripts have run."""
    def __init__(self, file, fragment, home):
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}", "--virtual-time-budget=3000",
                   "--dump-dom", f"file://{file}#{fragment}"]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False, env={**os.environ, "HOME": home})
        self.text = result.stdout.decode("utf-8", "replace")
        body = re.search(r"<body([^>]*)>", self.text)
        assert body and "data-total" in body[1], (result.returncode, self.text[:500], result.stderr[-2000:])
        self.data = {name: html.unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', body[1])}
        self.rows = [({"own": own, "total": total}, html.unescape(name))
                     for own, total, name in re.findall(r'<tr class="[^"]*" data-own="([^"]*)" data-total="([^"]*)"><td[^>]*>([^<]*)', self.text)]

    def numbers(self, name):
        return [float(word) for word in self.data[name].split()]
