"""One headless Chromium, one page, by the DevTools protocol over a pipe: what a person would do with it, and what it
complains of."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

WITH_WINDOWS = shutil.which("chromium") or shutil.which("google-chrome")
# It costs half: the same engine without what surrounds a page (hints to connect, the icon of a tab).
PROGRAM = shutil.which("/usr/lib/chromium/chromium-headless-shell") or WITH_WINDOWS
DEADLINE = 60
# Without its sandbox: neither root nor a default container has one. Back-forward cache: else going back loads nothing.
FLAGS = (
    "--no-sandbox "
    "--headless=new --remote-debugging-pipe --no-first-run --no-default-browser-check --disable-background-networking --disable-component-update "
    "--disable-sync --disable-extensions --disable-gpu --disable-dev-shm-usage --disable-breakpad --mute-audio --force-color-profile=srgb "
    "--disable-features=BackForwardCache,Translate"
).split()


# Two pictures: the share of pixels that are equal. Where only one has a pixel, it is different.
SAME_PIXELS = """(async (...encoded) => {
  const pictures = await Promise.all(encoded.map(async data =>
    createImageBitmap(await (await fetch("data:image/png;base64," + data)).blob())));
  const width = Math.max(...pictures.map(p => p.width)), height = Math.max(...pictures.map(p => p.height));
  const [a, b] = pictures.map(picture => {
    const pen = new OffscreenCanvas(width, height).getContext("2d");
    pen.drawImage(picture, 0, 0);
    return new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer);
  });
  return a.filter((pixel, i) => pixel === b[i]).length / a.length;
})"""


COLOURS = """(async (encoded) => {
  const picture = await createImageBitmap(await (await fetch("data:;base64," + encoded)).blob());
  const pen = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  pen.drawImage(picture, 0, 0);
  return new Set(new Uint32Array(pen.getImageData(0, 0, picture.width, picture.height).data.buffer)).size;
})"""


class Chromium:
    def __init__(self, width=1280, height=900, flags=(), program=PROGRAM):
        self.profile = tempfile.mkdtemp(prefix="holdfast-browser-")
        read_commands, self.commands = os.pipe()
        self.replies, write_replies = os.pipe()

        def descriptors():
            # Out of the way first: one may be where the other is to go.
            first, second = os.dup(read_commands), os.dup(write_replies)
            os.dup2(first, 3)
            os.dup2(second, 4)

        arguments = [program, *FLAGS, *flags, f"--user-data-dir={self.profile}", f"--window-size={width},{height}"]
        self.process = subprocess.Popen(
            [*arguments, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": self.profile},  # a browser that is killed leaves a socket there
            preexec_fn=descriptors,
            close_fds=False,
            start_new_session=True,
        )
        os.close(read_commands)
        os.close(write_replies)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.complaints = []  # of the console, of scripts, of the network
        self.requests = []  # URLs asked for
        self.loads = 0
        target = [one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page"][0]
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.ask(f"{domain}.enable")

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.commands)
        os.close(self.replies)
        for _ in range(50):  # what it had started may still be writing there for a moment
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.1)

    def _message(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.replies], [], [], max(0, end - time.monotonic()))
            piece = os.read(self.replies, 1 << 20) if ready else b""
            if not piece:
                raise AssertionError("Chromium does not answer")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message):
        method, about = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("warning", "error"):
            self.complaints.append(about["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("text", "exception"))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("warning", "error", "assert"):
            self.complaints.append(json.dumps(about["args"]))

    def ask(self, method, **parameters):
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.commands, json.dumps(call).encode() + b"\0")
        end = time.monotonic() + DEADLINE
        while True:
            message = self._message(end)
            if message.get("id") == self.number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, what, expression):
        end = time.monotonic() + DEADLINE
        while True:
            try:
                value = self.value(expression)
            except AssertionError as problem:  # between two documents
                value, what = None, f"{what} ({problem})" if time.monotonic() > end else what
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(
                    f"it did not happen in time that {what}; the page says: {self.value('document.body.innerText')[:2000]}"
                )
            time.sleep(0.05)

    def _loaded(self, act):
        self.ask("Page.enable")  # reads what it has said until now: an earlier load does not count
        before = self.loads
        act()
        end = time.monotonic() + DEADLINE
        while self.loads == before:
            self._note(self._message(end))

    def open(self, url):
        self._loaded(lambda: self.ask("Page.navigate", url=url))

    def back(self):
        def act():
            history = self.ask("Page.getNavigationHistory")
            self.ask("Page.navigateToHistoryEntry", entryId=history["entries"][history["currentIndex"] - 1]["id"])

        self._loaded(act)

    def click(self, selector):
        """With the mouse, where the element is, as a person would."""
        self.until(f"{selector} is there", f"!!document.querySelector({json.dumps(selector)})")
        spot = self.value(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2] }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )

        def act():
            for kind in ("mousePressed", "mouseReleased"):
                self.ask("Input.dispatchMouseEvent", type=kind, x=spot[0], y=spot[1], button="left", clickCount=1)

        self._loaded(act)

    def key(self, key, text=None):
        codes = {"Tab": 9, "Enter": 13, "/": 191}
        more = {"text": text or ("\r" if key == "Enter" else "")} if text or key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=codes.get(key, 0), **more)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes.get(key, 0))

    def enter(self):
        self._loaded(lambda: self.key("Enter"))

    def look(self, width, height, dark):
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.ask(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def full_page(self, width, height):
        """A picture of all of the page, in a window of that size."""
        self.ask("Emulation.setScrollbarsHidden", hidden=True)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        picture = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(picture["data"])

    def same_pixels(self, left, right):
        """Of two PNG files, the share of pixels that are equal."""
        self.open("about:blank")
        texts = (json.dumps(base64.b64encode(picture).decode()) for picture in (left, right))
        return self.value(f"{SAME_PIXELS}({','.join(texts)})")

    def colours(self, picture):
        """How many different colours a picture (of any kind that the browser reads) has."""
        self.open("about:blank")
        return self.value(f"{COLOURS}({json.dumps(base64.b64encode(picture).decode())})")

    def screenshot(self, name):
        """Kept where HOLDFAST_TEST_SCREENSHOTS says, for people to look at."""
        data = base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
        if os.environ.get("HOLDFAST_TEST_SCREENSHOTS"):
            with open(os.path.join(os.environ["HOLDFAST_TEST_SCREENSHOTS"], name + ".png"), "wb") as file:
                file.write(data)
        return data
