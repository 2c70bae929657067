# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium over its DevTools pipe, like a user with mouse and keyboard."""

import base64
import fcntl
import json
import os
import subprocess
import tempfile


def above_nine(descriptor):
    """Moves a descriptor to 10 or higher, because the browser needs 3 and 4."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


class Browser:
    """One page in one window. Use it as a context manager, which ends everything that it started."""

    def __init__(self, width=1200, height=900):
        # The browser's helper processes may still write files while it exits.
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to_write = (above_nine(end) for end in os.pipe())
        self.from_read, from_write = (above_nine(end) for end in os.pipe())
        # The browser reads commands from descriptor 3 and replies on 4.
        self.process = subprocess.Popen(
            [
                "bash",
                "-c",
                f"exec chromium --headless=new --no-sandbox --disable-gpu --remote-debugging-pipe "
                f"--hide-scrollbars --user-data-dir={self.folder.name} about:blank 3<&{to_read} 4>&{from_write}",
            ],
            pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.errors = []
        self.requests = []  # addresses, in the order they were asked for
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.to_write)
        os.close(self.from_read)
        self.folder.cleanup()

    def message(self):
        while b"\0" not in self.buffer:
            more = os.read(self.from_read, 1 << 16)
            if not more:
                raise RuntimeError("the browser ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(json.dumps(message["params"]))
        if message.get("method") == "Runtime.consoleAPICalled" and message["params"]["type"] in ("error", "warning"):
            self.errors.append(json.dumps(message["params"]))
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to_write, json.dumps(command).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}],
        )

    def open(self, place):
        """Opens a file or an address."""
        place = str(place)
        self.call("Page.navigate", url=place if place.startswith("http://") else "file://" + os.path.abspath(place))
        self.loaded()

    def follow(self, script):
        """Runs a script that leads to another page and waits for that page to load."""
        self.call("Runtime.evaluate", expression=script)
        self.loaded()

    def loaded(self):
        while self.message().get("method") != "Page.loadEventFired":
            pass

    def run(self, script):
        """Returns the value of an expression, after waiting for a promise."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def drawn(self):
        """Waits until the frames that the last event requested are drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, start, end):
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1)
        for part in (0.25, 0.5, 0.75, 1):
            self.mouse(
                "mouseMoved",
                start[0] + (end[0] - start[0]) * part,
                start[1] + (end[1] - start[1]) * part,
                button="left",
                buttons=1,
            )
        self.mouse("mouseReleased", *end, button="left", clickCount=1)
        self.drawn()

    def wheel(self, x, y, down):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=down)
        self.drawn()

    def key(self, key):
        more = {"text": key} if len(key) == 1 else {}
        if key == "Tab":  # the browser itself moves the focus, and goes by the code
            more = {"code": "Tab", "windowsVirtualKeyCode": 9}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.drawn()

    def screenshot(self, path):
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))
