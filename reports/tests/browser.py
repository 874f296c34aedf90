"""A headless Chromium, driven by the DevTools protocol; it remembers every request, message and error of its page."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import websocket

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40}


def program():
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="dflash-browser-")
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                 "--disable-background-networking", "--disable-extensions", "--remote-debugging-port=0",
                 "--force-color-profile=srgb", f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen([program(), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket, self.number, self.events = None, 0, []
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self):
        port = self._port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S) as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        self.socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=PATIENCE_S, suppress_origin=True)
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def _port(self):
        told, until = Path(self.folder, "DevToolsActivePort"), time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"{program()} ended with {self.process.returncode}")
            if told.exists() and "\n" in (text := told.read_text()):
                return int(text.split("\n")[0])
            time.sleep(0.05)
        raise RuntimeError(f"{program()} does not answer")

    def _receive(self):
        message = json.loads(self.socket.recv())
        if "method" in message:
            self.events.append(message)
        return message

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while (message := self._receive()).get("id") != self.number:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def open(self, path, width=1280, height=900, dark=False):
        self.events.clear()
        self.look(width, height, dark)
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive()

    def look(self, width, height=900, dark=False, media=""):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def run(self, script):
        """The value of an expression, or of a function's body with `return`."""
        body = f"(() => {{ {script} }})()" if "return " in script else script
        result = self.call("Runtime.evaluate", expression=body, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "script failed"))
        return result["result"].get("value")

    def press(self, key):
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def shot(self, path, whole=False):
        options = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options = {"captureBeyondViewport": True,
                       "clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(base64.b64decode(data))

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]

    def complaints(self):
        """Errors and warnings of the page and its script."""
        found = [event["params"]["exceptionDetails"] for event in self.events if event["method"] == "Runtime.exceptionThrown"]
        found += [event["params"] for event in self.events if event["method"] == "Runtime.consoleAPICalled"]
        return found + [event["params"]["entry"] for event in self.events if event["method"] == "Log.entryAdded"]

    def close(self):
        try:
            if self.socket is not None:
                self.call("Browser.close")
        except (OSError, websocket.WebSocketException, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.socket is not None:
            self.socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def missing():
    """Why there can be no browser test here; None where there can."""
    if program():
        return None
    if os.environ.get("DFLASH_REQUIRE_BROWSER"):
        raise RuntimeError("DFLASH_REQUIRE_BROWSER is set and no chromium is here: ci/setup browser")
    return "no chromium is here: ci/setup browser"
