"""One headless Chromium, one page, over the DevTools protocol on a pipe.

The command-line switches (--screenshot, --dump-dom) cannot tell an error page from the page; the protocol
says what the server answered, whether the page finished loading, and where redirects led. The browser has
a profile of its own in a temporary directory and is gone, with everything it started, when the `with` ends.
"""

import base64
import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import fetch
from hook import Failed, NoResults, Unreachable, media_type

MAX_REPLY_BYTES = 256 << 20
_SHOWN_TYPES = ("application/xhtml+xml", "application/xml", "application/json")
_FLAGS = (
    "--headless=new --remote-debugging-pipe --disable-quic --no-first-run --no-default-browser-check "
    "--disable-background-networking --disable-component-update --disable-default-apps --disable-sync "
    "--disable-extensions --disable-gpu --disable-dev-shm-usage --disable-breakpad --disable-domain-reliability "
    "--disable-client-side-phishing-detection --disable-features=Translate,MediaRouter,OptimizationHints "
    "--metrics-recording-only --mute-audio --hide-scrollbars --password-store=basic --use-mock-keychain "
    "--force-color-profile=srgb"
).split()

# Errors that say nothing about the page.
_OWN_TROUBLE = (
    "net::ERR_ABORTED",
    "net::ERR_BLOCKED_BY_CLIENT",
    "net::ERR_INSUFFICIENT_RESOURCES",
    "net::ERR_INTERNET_DISCONNECTED",
    "net::ERR_NETWORK_CHANGED",
)


@dataclass
class Loaded:
    """What is known of the page once it is there."""

    url: str
    status: int
    content_type: str
    complete: bool  # the document itself was parsed to its end
    finished: bool  # and everything it asked for has come
    broken: str  # why it is not complete, if it is not merely slow

    def about(self):
        return {"url": self.url, "status": self.status, "complete": self.complete, "finished": self.finished}


def refuse_other_types(job):
    """A PDF, an image or a download is no page to render: say so without starting a browser."""
    head = job.sibling_json("headers/headers.json")
    if head.get("status") == 200:
        _refuse_type(media_type(str(head.get("content_type") or "")))


def _refuse_type(kind):
    if kind and not kind.startswith("text/") and kind not in _SHOWN_TYPES and not kind.endswith("+xml"):
        raise NoResults(f"not a page for a browser: {kind}")
    if kind == "image/svg+xml":
        raise NoResults("not a page for a browser: image/svg+xml")


class Browser:
    """Use in a `with`. Every call has the job's deadline."""

    def __init__(self, job):
        self._job = job
        self._number = 0
        self._buffer = bytearray()
        self._events = []  # received while waiting for a reply
        self._session = None
        self._frame = None
        self._document = {}  # the main frame's last response
        self._document_request = None
        self._navigation = None  # the main frame's last request for a document
        self._navigation_error = ""  # why that brought none
        self._loaded = False
        self._broken = ""  # why the document did not arrive whole

    def __enter__(self):
        job = self._job
        program = job.program("CHROME_BINARY", ["chromium", "chromium-browser", "google-chrome", "chrome"], "chromium")
        self._profile = tempfile.mkdtemp(prefix="holdfast-chrome-", dir=job.setting("TMP_DIR") or None)
        try:
            self._start(program)
        except BaseException:
            shutil.rmtree(self._profile, ignore_errors=True)
            raise
        return self

    def _start(self, program):
        job = self._job
        arguments = [program, *_FLAGS, f"--user-data-dir={self._profile}", "--window-size=" + self.resolution()]
        if os.geteuid() == 0 or not job.flag("CHROME_SANDBOX", True):
            arguments.append("--no-sandbox")  # Chromium refuses to run as root with it
        if job.setting("USER_AGENT"):
            arguments.append("--user-agent=" + job.setting("USER_AGENT"))
        if not job.flag("CHECK_SSL_VALIDITY", True):
            arguments.append("--ignore-certificate-errors")
        if not fetch.is_private(urlsplit(job.url).hostname):
            # A page on the internet must not read machines inside through our browser.
            rules = ", ".join(f"MAP {pattern} ~NOTFOUND" for pattern in fetch.PRIVATE_HOST_PATTERNS)
            arguments.append("--host-resolver-rules=" + rules)
        # The browser reads commands from descriptor 3 and answers on 4. Our own ends are moved out of the way.
        commands, self._commands = (_high(end) for end in os.pipe())
        self._replies, replies = (_high(end) for end in os.pipe())
        os.dup2(commands, 3)
        os.dup2(replies, 4)
        try:
            self._process = subprocess.Popen(
                [*arguments, "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(3, 4),
                start_new_session=True,
                env={**os.environ, "XDG_CONFIG_HOME": self._profile, "XDG_CACHE_HOME": self._profile},
            )
        finally:
            for end in (3, 4, commands, replies):
                os.close(end)

    def __exit__(self, *_exception):
        for end in (self._commands, self._replies):
            os.close(end)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the profile is thrown away: nothing to save
        self._process.wait()
        for _ in range(20):  # its children may still be writing while they die
            shutil.rmtree(self._profile, ignore_errors=True)
            if not os.path.exists(self._profile):
                break
            time.sleep(0.05)

    def resolution(self):
        job = self._job
        text = job.setting(job.plugin.upper() + "_RESOLUTION", job.setting("RESOLUTION", "1440,900"))
        width, _, height = text.partition(",")
        if not (width.isdigit() and height.isdigit() and 0 < int(width) <= 8192 and 0 < int(height) <= 8192):
            raise Failed(f"{job.plugin.upper()}_RESOLUTION={text!r} is not WIDTH,HEIGHT")
        return f"{width},{height}"

    def open(self):
        """Goes to the job's URL and waits until it has loaded, or until only the time to save it is left."""
        job = self._job
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self.call("Browser.setDownloadBehavior", {"behavior": "deny"}, session=False)
        self.call("Page.enable")
        self.call("Network.enable", {"maxTotalBufferSize": 1 << 20, "maxResourceBufferSize": 1 << 19})
        width, height = map(int, self.resolution().split(","))
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", metrics)
        give_up = job.deadline - min(15.0, 0.25 * job.timeout)
        self._frame = self.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        self._navigate(give_up)
        self._pump(give_up, lambda: self._loaded or self._broken)
        if self._loaded:
            settle = time.monotonic() + job.number("CHROME_DELAY_AFTER_LOAD", 0.5)
            self._pump(min(settle, give_up), lambda: False)
        self._refuse_error_page()
        job.report_redirect(job.url, str(self._document.get("url") or job.url))
        status = self._report_response()
        if status in (429, 503):
            headers = {key.lower(): value for key, value in self._document.get("headers", {}).items()}
            job.report_rate_limit(urlsplit(self._document["url"]).hostname, status, headers.get("retry-after"))
        if status >= 400:
            raise Failed(f"HTTP {status}")
        _refuse_type(media_type(self._document.get("mimeType", "")))
        state = self.call("Runtime.evaluate", {"expression": "document.readyState", "returnByValue": True})
        url = str(self._document.get("url") or job.url)
        return Loaded(
            url=url,
            status=status,
            content_type=self._document.get("mimeType", ""),
            complete=state.get("result", {}).get("value") != "loading" and not self._broken,
            finished=self._loaded,
            broken=self._broken,
        )

    def _navigate(self, until):
        job = self._job
        site = urlsplit(job.url).netloc
        answer = self.call("Page.navigate", {"url": job.url}, until=until, unanswered=f"{site}: no answer in time")
        error = answer.get("errorText")
        if answer.get("isDownload"):
            raise NoResults("not a page for a browser: the server sent a download")
        if error == "net::ERR_HTTP_RESPONSE_CODE_FAILURE":  # an error status without a body
            raise Failed(f"HTTP {self._report_response()}")
        if error in _OWN_TROUBLE:
            raise Failed(f"{site}: {error}")
        if error:
            raise Unreachable(f"{site}: {error}")

    def _report_response(self):
        url, status = str(self._document.get("url") or self._job.url), int(self._document.get("status") or 0)
        self._job.report_response(url, status, self._document.get("mimeType", ""))
        return status

    def _refuse_error_page(self):
        """A page can lead on, by script or refresh, to where there is nothing. Chromium then shows a page of
        its own in the main frame, which must not be taken for the page."""
        frame = self.call("Page.getFrameTree")["frameTree"]["frame"]
        if frame.get("unreachableUrl") or frame["url"].startswith("chrome-error:"):
            where = str(frame.get("unreachableUrl") or "another page")[:500]
            why = self._navigation_error or self._reason_on_error_page() or "it cannot be reached"
            raise Failed(f"the page led to {where}: {why}")

    def _reason_on_error_page(self):
        """Chromium may only say that a navigation was aborted; the page that it shows names the error."""
        shown = self.call("Runtime.evaluate", {"expression": "document.body.innerText", "returnByValue": True})
        found = re.search(r"\b(?:ERR|DNS_PROBE)_[A-Z0-9_]+", str(shown.get("result", {}).get("value", "")))
        return f"net::{found.group()}" if found else ""

    def call(self, method, parameters=None, until=None, session=True, unanswered=""):
        """Sends one command and returns its result. `unanswered`: what it means that there is none in time."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters or {}}
        if session and self._session:
            message["sessionId"] = self._session
        self._send(message)
        answer = []

        def arrived():
            for event in self._events:
                if event.get("id") == number:
                    answer.append(event)
            self._events.clear()
            return bool(answer)

        if not self._pump(until or self._job.deadline, arrived):
            if unanswered:
                raise Unreachable(unanswered)
            raise Failed(f"the browser did not answer in time ({method})")
        if "error" in answer[0]:
            raise Failed(f"{method}: {answer[0]['error'].get('message', 'error')}")
        return answer[0].get("result", {})

    def _send(self, message):
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._commands, data) :]
        except BrokenPipeError:
            raise Failed("the browser ended by itself") from None

    def _pump(self, until, done):
        """Takes in what the browser says until `done()` or until the time is up; true if done."""
        while not done():
            wait = until - time.monotonic()
            if wait <= 0:
                return False
            readable, _, _ = select.select([self._replies], [], [], wait)
            if not readable:
                return False
            piece = os.read(self._replies, 1 << 20)
            if not piece:
                raise Failed("the browser ended by itself")
            start = len(self._buffer)
            self._buffer += piece
            if len(self._buffer) > MAX_REPLY_BYTES:
                raise Failed(f"the page is larger than {MAX_REPLY_BYTES >> 20} MiB")
            if b"\0" in piece:
                end = self._buffer.rfind(b"\0", start)
                complete = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                for line in complete.split(b"\0"):
                    self._take(json.loads(line))
        return True

    def _take(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method is None:
            self._events.append(message)
        elif message.get("sessionId") != self._session:
            pass
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            if parameters.get("type") == "Document" and parameters.get("frameId") == self._frame:
                self._navigation, self._navigation_error = parameters["requestId"], ""
        elif method == "Network.responseReceived":
            if parameters.get("type") == "Document" and parameters.get("frameId") == self._frame:
                self._document, self._document_request = parameters["response"], parameters["requestId"]
        elif method == "Network.loadingFailed":
            error = parameters.get("errorText") or ""
            if parameters.get("requestId") == self._navigation and error != "net::ERR_ABORTED":  # which says nothing
                self._navigation_error = error
            if parameters.get("requestId") == self._document_request:
                self._broken = parameters.get("errorText") or "broken off"
        elif method == "Page.javascriptDialogOpening":  # alert() would hold everything up
            self._number += 1
            self._send(
                {
                    "id": self._number,
                    "sessionId": self._session,
                    "method": "Page.handleJavaScriptDialog",
                    "params": {"accept": parameters.get("type") == "beforeunload"},
                }
            )
        elif method == "Inspector.targetCrashed":
            raise Failed("the page crashed the browser")

    def html(self):
        """The document as it stands now, scripts having run."""
        root = self.call("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
        html = self.call("DOM.getOuterHTML", {"nodeId": root})["outerHTML"]
        self._refuse_error_page()  # the page may have left after it was judged
        return html

    def screenshot(self, max_height):
        """PNG of the whole page, from its top, at most `max_height` pixels of it."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": min(size["width"], 8192), "height": min(size["height"], max_height), "scale": 1}
        return self._bytes("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip})

    def pdf(self):
        return self._bytes("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})

    def _bytes(self, method, parameters):
        data = base64.b64decode(self.call(method, parameters)["data"])
        self._refuse_error_page()
        return data


def unfinished(loaded):
    """A page cut off by the time limit is kept, but it is no success."""
    if loaded.broken:
        raise Failed(f"the page broke off: {loaded.broken}; kept what there was", loaded.about())
    if not loaded.complete:
        raise Failed("the page did not arrive whole within the time limit; kept what there was", loaded.about())


def _high(descriptor):
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
