# SPDX-License-Identifier: MIT
"""HTML reports as a browser shows them: headless Chromium, where it is installed."""
import html
import json
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


class Driven:
    """A page that is open in a browser, whose mouse, fingers and keys are moved by the protocol of its developer tools."""
    def __init__(self, file, fragment, home, width=1000):
        to_browser, from_browser = os.pipe(), os.pipe()

        def place():
            for end, number in ((to_browser[0], 3), (from_browser[1], 4)):
                os.dup2(end, number + 100, True)
            for number in (3, 4):
                os.dup2(number + 100, number, True)
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}", f"--window-size={width},1500",
                   "--remote-debugging-pipe", f"file://{file}#{fragment}"]
        self.process = subprocess.Popen(command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": home})
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.out, self.into = to_browser[1], os.fdopen(from_browser[0], "rb")
        self.number, self.session = 0, None
        page = next(target for target in self.call("Target.getTargets")["targetInfos"] if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        while not self.value("document.body && document.body.dataset.total"):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        self.into.close()

    def read(self):
        message = b""
        while not message.endswith(b"\0"):
            byte = self.into.read(1)
            assert byte, "the browser has ended"
            message += byte
        return json.loads(message[:-1])

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": self.session} if self.session else {})}
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.number:
            pass
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button="left", buttons=1 if kind != "Released" else 0, clickCount=1)

    def touch(self, kind, *points):
        self.call("Input.dispatchTouchEvent", type=f"touch{kind}", touchPoints=[{"x": x, "y": y} for x, y in points])

    def key(self, name, shift=False):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, modifiers=8 if shift else 0)
