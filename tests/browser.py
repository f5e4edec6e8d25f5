"""A real browser for the tests, driven through its debugging pipe: no package is needed for it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
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


class Browser:
    """Hands commands and answers to and from the tabs."""

    def __init__(self, send, receive):
        self._write, self._read = send, receive
        self._number = 0
        self._tabs = {}

    def call(self, session, method, parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._write(message)
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._keep(answer)

    def wait(self):
        self._keep(self._read())

    def _keep(self, event):
        if event.get("sessionId") in self._tabs:
            self._tabs[event["sessionId"]].events.append(event)

    def tab(self):
        target = self.call(None, "Target.createTarget", {"url": "about:blank"})["targetId"]
        flat = {"targetId": target, "flatten": True}
        session = self.call(None, "Target.attachToTarget", flat)["sessionId"]
        self._tabs[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self._tabs[session].call(f"{domain}.enable")
        return self._tabs[session]


class Page:
    """One tab, with all that it logged and all that it asked for."""

    def __init__(self, browser, session, target):
        self.browser = browser
        self._session, self._target = session, target
        self.events = deque()

    def call(self, method, **parameters):
        return self.browser.call(self._session, method, parameters)

    def open(self, address, width=1400, height=900):
        """Open a file or an address, and wait until it is loaded."""
        self.events.clear()
        # A tab behind another one neither scrolls nor has the focus.
        self.call("Page.bringToFront")
        self.resize(width, height)
        self.call("Page.navigate", url=address if isinstance(address, str) else address.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.browser.wait()

    def close(self):
        self.browser.call(None, "Target.closeTarget", {"targetId": self._target})

    def wait_for(self, expression, seconds=20):
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < end, f"after {seconds} s it is not true that {expression}"
            time.sleep(0.03)
        return value

    def set_files(self, selector, *paths):
        """Choose files, as a person would in the dialog of the browser."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in paths])

    def press_tab(self):
        """Press the key that moves the focus."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9)

    def download(self, folder, click):
        """Click on something that downloads a file, and return the file."""
        before = set(folder.iterdir())
        behavior = {"behavior": "allow", "downloadPath": str(folder)}
        self.browser.call(None, "Browser.setDownloadBehavior", behavior)
        self.evaluate(click)
        end = time.monotonic() + 20
        while not (found := set(folder.iterdir()) - before) or any(
            path.suffix == ".crdownload" for path in found
        ):
            assert time.monotonic() < end, f"nothing was downloaded by {click}"
            time.sleep(0.02)
        (path,) = found
        return path

    def prefer(self, scheme):
        """Let the page believe that the reader prefers light or dark; none to say nothing."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media="", features=[feature] if scheme else [])

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


def luminance(color):
    channels = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Return how far two colors stand out from one another, from 1 to 21."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


# What is seen of an element: the color of its words, and that behind them.
COLORS = """(name) => {
  const element = document.querySelector(name);
  let behind = element, back;
  while ((back = getComputedStyle(behind).backgroundColor).endsWith(", 0)"))
    behind = behind.parentElement;
  return [name, getComputedStyle(element).color, back];
}"""


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
        yield Browser(send, receive).tab()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(ours_out)
        os.close(ours_in)
