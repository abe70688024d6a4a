"""What every starter hook shares: arguments, settings, deadline, and the one result line.

A hook is a function `body(job)` handed to `run(plugin, body)`. It returns (output_str, output_json)
for a success and raises NoResults, Skipped or Failed otherwise, so that success is always claimed and
never assumed. The body writes only into `job.out`, its own directory, which is also the current one.
"""

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

EXIT_FAILED = 1
EXIT_SKIPPED = 10


class Outcome(Exception):
    """Ends the hook with a reason, one line for people."""

    def __init__(self, reason, output_json=None):
        super().__init__(reason)
        self.reason = reason
        self.output_json = output_json


class NoResults(Outcome):
    """There is nothing of this kind at this URL; not an error."""


class Skipped(Outcome):
    """This machine cannot run the hook."""


class Failed(Outcome):
    """It was tried and did not work."""


class Unreachable(Failed):
    """The page cannot be fetched: other hooks need not try."""


class OutOfTime(BaseException):
    """The alarm rang. Not an Exception, so that no `except OSError` on the way swallows it."""


class Job:
    """One run of one hook: what it was asked, where it may write, how long it may take."""

    def __init__(self, plugin, url):
        self.plugin = plugin
        self.url = url
        snapshot_directory = os.environ.get("SNAP_DIR")
        self.out = Path(snapshot_directory) / plugin if snapshot_directory else Path.cwd()
        self.out.mkdir(parents=True, exist_ok=True)
        os.chdir(self.out)
        self.snapshot = self.out.parent
        self.timeout = self.number(plugin.upper() + "_TIMEOUT", self.number("TIMEOUT", 60))
        # The runner ends a hook at its timeout. Stopping a little earlier leaves time to keep what was
        # got and to say so.
        self.margin = min(5.0, 0.1 * self.timeout)
        self.deadline = time.monotonic() + self.timeout - self.margin
        self._redirects = set()

    def setting(self, name, default=""):
        return os.environ.get(name) or default

    def flag(self, name, default):
        value = os.environ.get(name, "").strip().lower()
        return default if not value else value in ("true", "1", "yes", "on")

    def number(self, name, default):
        try:
            value = float(os.environ.get(name) or default)
        except ValueError:
            raise Failed(f"{name}={os.environ[name]!r} is not a number") from None
        if not 0 < value < 1e12:
            raise Failed(f"{name}={os.environ[name]!r} is out of range")
        return value

    def size(self, name, default):
        """A number of bytes, written as 500k, 20m, 1g or a plain number."""
        text = self.setting(name, default).strip().lower()
        match = re.fullmatch(r"(\d+)\s*([kmgt]?)(?:i?b)?", text)
        if not match:
            raise Failed(f"{name}={text!r} is not a size; write for example 500m or 1g")
        return int(match[1]) * 1024 ** " kmgt".index(match[2] or " ")

    def remaining(self):
        """Seconds left for work, at least a moment, so that it can be handed to any timeout."""
        return max(0.1, self.deadline - time.monotonic())

    def program(self, setting, names, package):
        """Absolute path of an installed program, or the hook is skipped with a hint."""
        for name in [self.setting(setting), *names]:
            found = shutil.which(name) if name else None
            if found:
                return found
        raise Skipped(f"{names[0]} is not installed (apt install {package})")

    def write(self, name, data):
        """Writes a file whole or not at all, replacing what an earlier run left."""
        target = self.out / name
        temporary = target.with_name(target.name + ".part")
        temporary.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "replace"))
        os.replace(temporary, target)

    def write_json(self, name, value):
        self.write(name, json.dumps(clean(value), indent=1) + "\n")

    def sibling_json(self, name):
        """A small JSON object that another plugin left, for example headers/headers.json; {} if none."""
        try:
            with open(self.snapshot / name, "rb") as file:
                value = json.loads(file.read(1 << 20))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def report_rate_limit(self, host, status, retry_after):
        """Tells the scheduler that a site asked us to slow down."""
        record = {"type": "RateLimit", "host": host, "status": status}
        seconds = retry_after_seconds(retry_after)
        if seconds is not None:
            record["retry_after"] = seconds
        emit(record)

    def report_response(self, url, status, content_type):
        """Tells what the server answered when asked for the page."""
        if status:
            emit({"type": "Response", "url": url, "status": status, "mime": media_type(content_type)})

    def report_redirect(self, url, location, status=0):
        """Tells where the page led, so that that is judged too: private addresses, robots.txt."""
        if location != url and location not in self._redirects:
            self._redirects.add(location)
            emit({"type": "Redirect", "url": url, "location": location, **({"status": status} if status else {})})


def media_type(content_type):
    return (content_type or "").split(";")[0].strip().lower()


def retry_after_seconds(value):
    """Retry-After is a number of seconds or a date; anything else is no answer."""
    from email.utils import parsedate_to_datetime

    value = (value or "").strip()
    if re.fullmatch(r"\d{1,9}", value):
        return int(value)
    try:
        return max(0, round(parsedate_to_datetime(value).timestamp() - time.time()))
    except (TypeError, ValueError, OverflowError):
        return None


_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def clean(value):
    """Drops what a database or a terminal must not be given: control characters and lone surrogates."""
    if isinstance(value, str):
        return _UNPRINTABLE.sub("", value)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    return value


def one_line(text, limit):
    """White space collapsed, cut at `limit` characters with an ellipsis."""
    text = " ".join(clean(text).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def emit(record):
    sys.stdout.write(json.dumps(clean(record)) + "\n")
    sys.stdout.flush()


def emit_result(status, output, output_json=None, error=None):
    record = {"type": "ArchiveResult", "status": status, "output_str": one_line(output, 1000)}
    if output_json is not None:
        record["output_json"] = output_json
    if error:
        record["error"] = one_line(error, 1000)
    emit(record)


def _argument(name):
    prefix = f"--{name}="
    for word in sys.argv[1:]:
        if word.startswith(prefix):
            return word[len(prefix):]
    return ""


def _stop(number, _frame):
    # Asked to stop: unwind through every `finally`, print no result; the runner puts the work back.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _alarm(_number, _frame):
    raise OutOfTime


def run(plugin, body):
    """Runs `body` as the hook of `plugin` and ends the process."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGALRM, _alarm)
    timeout = 0.0
    try:
        url = _argument("url")
        if not url:
            raise Failed("no --url=URL was given")
        if not re.match(r"https?://[^/]", url, re.IGNORECASE):
            raise NoResults("not an http or https URL")
        job = Job(plugin, url)
        timeout = job.timeout
        signal.setitimer(signal.ITIMER_REAL, timeout - job.margin / 2)
        output, output_json = body(job)
        signal.setitimer(signal.ITIMER_REAL, 0)
        emit_result("succeeded", output, output_json)
        code = 0
    except NoResults as outcome:
        emit_result("noresults", outcome.reason, outcome.output_json)
        code = 0
    except Skipped as outcome:
        emit_result("skipped", outcome.reason)
        code = EXIT_SKIPPED
    except Failed as outcome:
        if isinstance(outcome, Unreachable):
            emit({"type": "Unreachable", "reason": one_line(outcome.reason, 1000)})
        emit_result("failed", outcome.reason, outcome.output_json, outcome.reason)
        code = EXIT_FAILED
    except OutOfTime:
        reason = f"timed out after {timeout:g} s"
        emit_result("failed", reason, error=reason)
        code = EXIT_FAILED
    except Exception as error:  # a defect, or a page nobody thought of: still one clear line
        import traceback

        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        emit_result("failed", reason, error=reason)
        code = EXIT_FAILED
    sys.exit(code)
