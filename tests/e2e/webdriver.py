# SPDX-License-Identifier: MIT
"""
webdriver.py - a headless Chromium driven through chromedriver; the standard library only

Not here: tests. The protocol is W3C WebDriver (https://www.w3.org/TR/webdriver2/), plus chromedriver's DevTools
command for what the standard lacks.

	with Browser(tmp()) as browser:
		browser.open("file:///...")
		browser.script("return document.title")
"""
import base64
import http.client
import json
import re
import select
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from patience import HANG_S

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the standard's name for a reference to an element
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "--force-device-scale-factor=1", "--hide-scrollbars"]


def missing():
    """Which program of the two is not here, or None."""
    for tool in ("chromium", "chromedriver"):
        if not shutil.which(tool):
            return tool
    return None


class Browser:
    """One browser with one window. profile: an empty folder for its files."""

    def __init__(self, profile, width=1400, height=1000):
        self.session = None
        # Port 0: the driver picks one and says so.
        # Unbuffered, for select knows nothing of lines that were read ahead.
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], bufsize=0, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.base = "http://127.0.0.1:%d" % self._port()
            options = {"args": ARGUMENTS + ["--user-data-dir=" + profile, "--window-size=%d,%d" % (width, height)]}
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
            self.session = made["sessionId"]
            self.resize(width, height)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End the browser and its driver."""
        try:
            if self.session:
                self._call("DELETE", "")
        # A browser that is gone, a driver that is going, half an answer: the driver is ended anyway.
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AssertionError):
            pass
        finally:
            self.session = None
            self._end_driver()

    def _end_driver(self):
        self.driver.terminate()
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            self.driver.kill()
            self.driver.wait()
        self.driver.stdout.close()

    def _port(self):
        limit = time.monotonic() + HANG_S
        while time.monotonic() < limit:
            if not select.select([self.driver.stdout], [], [], 1)[0]:
                continue
            line = self.driver.stdout.readline().decode("utf-8", "replace")
            said = re.search(r"started successfully on port (\d+)", line)
            if said:
                return int(said.group(1))
            if not line:
                break
        raise AssertionError("chromedriver did not start")

    def _call(self, method, path, body=None):
        prefix = "/session/" + self.session if self.session else ""
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + prefix + path, data, {"Content-Type": "application/json"},
                                         method=method)
        # The driver is on this machine: no proxy.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=HANG_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            said = json.load(error)["value"]
            raise AssertionError("WebDriver %s: %s: %s" % (path, said["error"], said["message"])) from None

    def resize(self, width, height):
        """Size of the page in pixels, whatever the window's frame."""
        self.devtools("Emulation.setDeviceMetricsOverride",
                      {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def devtools(self, command, params):
        """A command of the Chrome DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def colour_scheme(self, scheme):
        """What the user prefers: 'light' or 'dark'."""
        self.devtools("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def script(self, text, *arguments):
        """Run the body of a function in the page; its arguments and its result are JSON."""
        return self._call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def wait_for(self, text, what, timeout_s=HANG_S):
        """Until a script returns something true, which is returned."""
        limit = time.monotonic() + timeout_s
        while True:
            value = self.script(text)
            if value:
                return value
            if time.monotonic() > limit:
                raise AssertionError("the page never came to this: " + what)
            time.sleep(0.05)

    def settle(self):
        """Until the page has drawn what it was told."""
        self._call("POST", "/execute/async", {"script": (
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"), "args": []})

    def _element(self, selector):
        return self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._call("POST", "/element/%s/click" % self._element(selector), {})

    def keys(self, selector, text):
        self._call("POST", "/element/%s/value" % self._element(selector), {"text": text})

    def mouse(self, steps):
        """
        Real mouse events: steps are ('move', x, y) in pixels of the page's view, ('down',), ('up',). The moves in
        between are the browser's own.
        """
        actions = []
        for step in steps:
            if step[0] == "move":
                actions.append({"type": "pointerMove", "duration": 60, "x": round(step[1]), "y": round(step[2])})
            else:
                actions.append({"type": {"down": "pointerDown", "up": "pointerUp"}[step[0]], "button": 0})
        self._call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse",
                                                     "parameters": {"pointerType": "mouse"}, "actions": actions}]})
        self._call("DELETE", "/actions")
        self.settle()

    def box(self, selector):
        """(x, y, width, height) of an element in the view."""
        return self.script("const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                           "return [b.x, b.y, b.width, b.height];", selector)

    def console(self):
        """
        What the console got since the last call, but from the browser's own pages: a list of entries with 'level' and 'message'.
        """
        return [entry for entry in self._call("POST", "/se/log", {"type": "browser"}) if not entry["message"].startswith("chrome://")]

    def screenshot(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self._call("GET", "/screenshot")))
