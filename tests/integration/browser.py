# SPDX-License-Identifier: MIT
"""HTML reports as a browser shows them: headless Chromium, where it is installed."""
import contextlib
import html
import json
import os
import re
import shutil
import signal
import subprocess
import time

PATIENCE = 120
CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Browser:
    """Headless Chromium, in which pages are opened: to start one takes longer than most of what is looked at there. It is spoken to by the
    protocol of its developer tools."""
    def __init__(self, home):
        to_browser, from_browser = os.pipe(), os.pipe()

        def place():
            for end, number in ((to_browser[0], 3), (from_browser[1], 4)):
                os.dup2(end, number + 100, True)
            for number in (3, 4):
                os.dup2(number + 100, number, True)
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}", "--window-size=1000,1500",
                   "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": home}, start_new_session=True)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.out, self.into = to_browser[1], from_browser[0]
        self.number, self.parts = 0, [b""]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Its other processes end a little later than the first, and write into its folder until then."""
        end = time.monotonic() + PATIENCE
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < end:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                time.sleep(0.02)
        os.close(self.out)
        os.close(self.into)

    def read(self):
        """The next message; the page of a large heap comes in many parts."""
        while b"\0" not in self.parts[-1]:
            self.parts.append(os.read(self.into, 1 << 20))
            if not self.parts[-1]:
                raise EOFError("the browser has ended")
        end, _, rest = self.parts[-1].partition(b"\0")
        message, self.parts = b"".join([*self.parts[:-1], end]), [rest]
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.number:
            pass
        assert "error" not in answer, (method, answer)
        return answer["result"]


class Driven:
    """A page that is open in a browser, in a window without anything of others, whose mouse, fingers and keys are moved."""
    def __init__(self, browser, file, fragment="", ready="document.body.dataset.total"):
        self.browser = browser
        self.apart = browser.call("Target.createBrowserContext")["browserContextId"]
        page = browser.call("Target.createTarget", url=f"file://{file}#{fragment}", browserContextId=self.apart)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)  # keys go to it, whatever window is in front
        self.until(ready)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.apart)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def until(self, condition):
        """In a document that is loaded to its end: what leads elsewhere before leaves no entry in the history to come back to. While one
        document gives way to another, the browser answers with an error."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(AssertionError):
                if self.value(f"document.readyState == 'complete' && {condition}"):
                    return
            time.sleep(0.02)
        raise AssertionError(condition)

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button="left", buttons=1 if kind != "Released" else 0, clickCount=1)

    def touch(self, kind, *points):
        self.call("Input.dispatchTouchEvent", type=f"touch{kind}", touchPoints=[{"x": x, "y": y} for x, y in points])

    def key(self, name, shift=False):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, modifiers=8 if shift else 0)


class Shown:
    """The page of a file as a browser has it with this fragment, after its scripts have run."""
    def __init__(self, browser, file, fragment):
        with Driven(browser, file, fragment) as page:
            self.text = page.value("document.documentElement.outerHTML")
        body = re.search(r"<body([^>]*)>", self.text)
        self.data = {name: html.unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', body[1])}
        self.rows = [({"own": own, "total": total}, html.unescape(name))
                     for own, total, name in re.findall(r'<tr class="[^"]*" data-own="([^"]*)" data-total="([^"]*)"><td[^>]*>([^<]*)', self.text)]

    def numbers(self, name):
        return [float(word) for word in self.data[name].split()]
