"""A real browser for the tests, driven through its debugging pipe: no package is needed for it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections import deque

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--remote-debugging-pipe",
]


class Page:
    """One tab, with all that it logged and all that it asked for."""

    def __init__(self, send, receive):
        self._write, self._read = send, receive
        self._number = 0
        self._session = None
        self.events = deque()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._write(message)
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1400, height=900):
        self.events.clear()
        self.resize(width, height)
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def resize(self, width, height=900):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def evaluate(self, expression):
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self):
        """Return all errors and warnings so far."""
        kinds = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [event for event in self.events if event["method"] in kinds]

    def requests(self):
        """Return all addresses asked for so far."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, path):
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))


@contextlib.contextmanager
def open_browser(folder, timeout=30):
    """Start Chromium with an empty profile, and end it whatever happens."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
    redirect = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out} 2>/dev/null >/dev/null'
    process = subprocess.Popen(
        ["bash", "-c", redirect, "bash", CHROMIUM, *_FLAGS, f"--user-data-dir={folder}"],
        pass_fds=(theirs_in, theirs_out),
    )
    os.close(theirs_in)
    os.close(theirs_out)
    waiting = bytearray()

    def send(message):
        os.write(ours_out, json.dumps(message).encode() + b"\0")

    def receive():
        end = time.monotonic() + timeout
        while b"\0" not in waiting:
            ready, _, _ = select.select([ours_in], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"the browser said nothing for {timeout} s"
            part = os.read(ours_in, 2**20)
            assert part, "the browser has ended"
            waiting.extend(part)
        message, _, rest = bytes(waiting).partition(b"\0")
        waiting[:] = rest
        return json.loads(message)

    try:
        yield Page(send, receive)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(ours_out)
        os.close(ours_in)
