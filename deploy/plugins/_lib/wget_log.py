"""Reads the log that wget writes with --server-response: what was asked, answered and saved."""

import re
from dataclasses import dataclass, field
from urllib.parse import urljoin

MAX_LOG_BYTES = 32 << 20

_REQUEST = re.compile(r"--\d{4}-\d\d-\d\d \d\d:\d\d:\d\d--  (?:\(try: *(\d+)\)  )?(\S+)$")
_STATUS = re.compile(r"  HTTP/\d(?:\.\d)? (\d{3})\b")
_HEADER = re.compile(r"  ([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?(.*)$")
_SAVING = re.compile(r"Saving to: [‘'](.*)[’']$")
_SAVED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(.*\) - .* saved \[\d+(?:/\d+)?\]$")
# There was no connection, so no other client gets one. The last try counts.
_NO_CONNECTION = re.compile(
    r"unable to resolve host address|failed: (?:Connection refused|Connection timed out|No route to host"
    r"|Network is unreachable|Name or service not known)"
)
_ERRORS = (
    (re.compile(r"(\d+ redirections exceeded)"), "too many redirects: {}"),
    (re.compile(r"Unsupported scheme"), "redirected to a URL that is not http or https"),
    (re.compile(r"unable to resolve host address"), "the host name does not resolve"),
    (re.compile(r"(?:failed|Read error .*?|Giving up|Unable to establish SSL connection)[:(] ?(.+?)\)?\.?$"), "{}"),
    (re.compile(r"(Connection closed at byte \d+)"), "the page broke off: {}"),
    (re.compile(r"(No data received)"), "{}"),
    (re.compile(r"(Unable to establish SSL connection)"), "{}"),
    (re.compile(r"ERROR: (.*certificate.*?)[,:.]?$"), "{}"),
    (re.compile(r"(Connection timed out|Read error)"), "{}"),
)


@dataclass
class Exchange:
    url: str = ""
    retry: bool = False
    status: int = 0
    headers: list = field(default_factory=list)
    redirect: str = ""
    saved_to: str = ""
    complete: bool = False
    error: str = ""
    unreachable: bool = False

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name), "")


def parse(path):
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    exchanges = []
    for line in text.split("\n"):
        request = _REQUEST.match(line)
        if request:
            exchanges.append(Exchange(request[2], retry=bool(request[1])))
        elif exchanges:
            _take(exchanges[-1], line.rstrip("\r"))
    return exchanges


def _take(exchange, line):
    status = _STATUS.match(line)
    if status:
        exchange.status, exchange.headers = int(status[1]), []
        return
    header = _HEADER.match(line)
    if header:
        exchange.headers.append((header[1], header[2]))
        return
    if line.startswith("Location: ") and line.endswith(" [following]"):
        exchange.redirect = urljoin(exchange.url, line[len("Location: ") : -len(" [following]")])
        return
    saving = _SAVING.match(line)
    if saving:
        exchange.saved_to = saving[1]
    elif _SAVED.match(line):
        exchange.complete = True
    else:
        exchange.unreachable = exchange.unreachable or bool(_NO_CONNECTION.search(line))
        for pattern, wording in _ERRORS:
            found = pattern.search(line)
            if found:
                exchange.error = wording.format(*found.groups())
                return


def main_exchange(exchanges):
    """The one that brought the page itself: the first, after its redirects and second tries."""
    main = Exchange(error="wget did not start a request")
    for position, exchange in enumerate(exchanges):
        saved_before = main.saved_to
        main = exchange
        main.saved_to = main.saved_to or saved_before
        following = exchanges[position + 1] if position + 1 < len(exchanges) else None
        if not following or not (exchange.redirect or following.retry):
            break
    return main


def missing(exchanges):
    """What was asked for and not got, as "404 URL"."""
    last = {exchange.url: exchange for exchange in exchanges if not exchange.redirect}  # the last try counts
    return [f"{e.status or 'no answer'} {e.url[:300]}" for e in last.values() if not e.complete]
