"""Controls a headless browser through the DevTools protocol, with only Python's standard library."""

import base64
import json
import os
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

FLAGS = [
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-extensions", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--mute-audio", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",
    "--remote-debugging-port=0",
]


class Browser:
    """A headless browser with one page of 1200 x 800 pixels."""

    def __init__(self, program="chromium", size=(1200, 800), flags=()):
        self.folder = tempfile.TemporaryDirectory()
        self.log = open(os.path.join(self.folder.name, "log"), "w")
        self.process = subprocess.Popen(
            [program, *FLAGS, *flags, f"--user-data-dir={self.folder.name}", f"--window-size={size[0]},{size[1]}",
             "about:blank"], stdout=self.log, stderr=self.log)
        port_file = os.path.join(self.folder.name, "DevToolsActivePort")
        until = time.time() + 60
        while not os.path.exists(port_file) or not open(port_file).read().strip():
            if time.time() > until or self.process.poll() is not None:
                raise RuntimeError("the browser did not start: " + open(self.log.name).read()[-2000:])
            time.sleep(0.1)
        port = int(open(port_file).read().split()[0])
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list"))
        address = next(page for page in pages if page["type"] == "page")["webSocketDebuggerUrl"]
        self.socket = WebSocket("127.0.0.1", port, address.split(str(port), 1)[1])
        self.number = 0
        self.errors, self.requests = [], []
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(domain + ".enable")
        self.resize(*size)

    def resize(self, width, height, scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile, maxTouchPoints=5 if mobile else 1)

    def call(self, method, **params):
        """Calls a method of the protocol and returns its result."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.record_event(message.get("method"), message.get("params", {}))

    def record_event(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(argument.get("value", argument.get("description"))) for argument in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path, wait=60):
        """Opens a file and waits until the page reports that it is ready."""
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait_for("document.documentElement?.dataset.state", wait)

    def evaluate(self, expression):
        """Evaluates a JavaScript expression in the page and returns its value."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "?"))
        return result["result"].get("value")

    def state(self):
        return self.evaluate("({...document.documentElement?.dataset})") or {}

    def wait_for(self, expression, wait=20):
        """Waits until an expression is true, and returns its value."""
        end = time.time() + wait
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.time() > end:
                raise RuntimeError(f"{expression} is still {value!r}; {self.state()} {self.errors}")
            time.sleep(0.05)

    def settle(self, seconds=0.3):
        """Waits some time and then for two animation frames."""
        self.evaluate(f"new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), {seconds * 1000}))")

    def screenshot(self, path):
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        with open(path, "wb") as file:
            file.write(data)
        return data

    def key(self, key, shift=False):
        code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Enter": 13, "Tab": 9}.get(key, ord(key[0].upper()))
        params = dict(key=key, code=key, windowsVirtualKeyCode=code, modifiers=8 if shift else 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", **params)
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    def drag(self, start, end, button="left", steps=4):
        held = dict(button=button, buttons={"left": 1, "right": 2}[button])
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], clickCount=1, **held)
        for i in range(1, steps + 1):
            x, y = (a + (b - a) * i / steps for a, b in zip(start, end))
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **held)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], clickCount=1, button=button, buttons=0)

    def click(self, x, y):
        self.drag((x, y), (x, y), steps=0)

    def wheel(self, x, y, by):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)

    def touch(self, *paths, steps=4):
        """Moves one finger per path, from the start to the end of the path."""
        at = lambda i: [{"x": a[0] + (b[0] - a[0]) * i / steps, "y": a[1] + (b[1] - a[1]) * i / steps, "id": n}
                        for n, (a, b) in enumerate(paths)]
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=at(0))
        for i in range(1, steps + 1):
            self.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=at(i))
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except Exception:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class WebSocket:
    """The part of RFC 6455 that DevTools needs: complete text messages in both directions."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=120)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.stream = self.socket.makefile("rb")
        assert b"101" in self.stream.readline()
        while self.stream.readline().strip():
            pass

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        length = len(data)
        head = struct.pack("!BB", 0x81, 0x80 | length) if length < 126 else (
            struct.pack("!BBH", 0x81, 0x80 | 126, length) if length < 65536 else struct.pack("!BBQ", 0x81, 0x80 | 127, length))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def receive(self):
        parts = []
        while True:
            first, second = self.stream.read(2)
            length = second & 0x7f
            if length > 125:
                size = 2 if length == 126 else 8
                length = int.from_bytes(self.stream.read(size), "big")
            data = self.stream.read(length)
            if first & 0xf in (0, 1):
                parts.append(data)
                if first & 0x80:
                    return b"".join(parts).decode()
