"""One bounded HTTP exchange: total deadline, limited body, every redirect recorded.

Used for headers, for icons, and for the page itself when no other plugin has saved it.
"""

import errno
import http.client
import ipaddress
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from hook import Failed, Unreachable

MAX_REDIRECTS = 10
# Of certificates that no client accepts: expired, not valid yet, self-signed, of another name or address. Others
# (an issuer that is unknown here) may be known to a browser.
_BAD_CERTIFICATES = (9, 10, 18, 62, 64)
_NO_CONNECTION = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EADDRNOTAVAIL)
_URL_SAFE = "%/:=&?~#+!$,;'@()*[]"

# Addresses that a page on the public internet has no business to send us to, as written in a URL.
PRIVATE_HOST_PATTERNS = (
    ["localhost", "*.localhost", "0.*", "10.*", "127.*", "169.254.*", "192.168.*", "[::1]", "[::]"]
    + [f"172.{second}.*" for second in range(16, 32)]
    + ["[fc*", "[fd*", "[fe8*", "[fe9*", "[fea*", "[feb*", "[::ffff:*"]
)


@dataclass
class Response:
    url: str
    status: int
    reason: str
    headers: list  # of (name, value), as sent
    redirects: list = field(default_factory=list)  # of {url, status, location}
    body: bytes = b""
    truncated: bool = False  # the limit or the deadline was met, or the connection broke off

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return ""


def _opener(job):
    context = ssl.create_default_context()
    if not job.flag("CHECK_SSL_VALIDITY", True):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # By hand: the ready-made one would also open file: and ftp:, and follow redirects by itself.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPCookieProcessor(CookieJar()),
    ):
        opener.add_handler(handler)
    return opener


def ascii_url(url):
    """The URL as it may stand in a request line: host in IDNA, everything else percent-encoded."""
    parts = urlsplit(url)
    host = parts.netloc
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    rest = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    return f"{parts.scheme}://{host}" + quote(rest.encode("utf-8", "replace"), safe=_URL_SAFE)


def _addresses(host):
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []  # the fetch itself will say it better
    return [ipaddress.ip_address(entry[4][0].split("%")[0]) for entry in found]


def is_private(host):
    """True if the host name leads to an address that is not on the public internet."""
    return any(not address.is_global for address in _addresses(host or ""))


def refuse_private(page_url, url):
    """A page on the internet must not steer us to a machine inside. If the page itself is inside, the
    operator has allowed that."""
    host, page_host = urlsplit(url).hostname, urlsplit(page_url).hostname
    if host != page_host and is_private(host) and not is_private(page_host):
        raise Failed(f"refused: {page_host} points to the private address {host}")


def explain(error):
    """One line for people out of what the network layers throw."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, socket.gaierror):
        return "the host name does not resolve"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"certificate: {reason.verify_message}"
    if isinstance(reason, TimeoutError):
        return "no answer within the time limit"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__


def _is_final(error):
    """True if no other client could get a response either: there is no connection, or no valid certificate. A
    server that closes the connection or stays silent may answer others."""
    if not isinstance(error, urllib.error.URLError):  # raised while the response was awaited
        return False
    reason = error.reason
    if isinstance(reason, ssl.SSLCertVerificationError):
        return reason.verify_code in _BAD_CERTIFICATES
    if isinstance(reason, (socket.gaierror, TimeoutError)):
        return True
    return isinstance(reason, OSError) and reason.errno in _NO_CONNECTION


def request(job, url, method="GET", limit=0, accept="*/*", share=1.0):
    """Follows redirects to the final response. Reads at most `limit` bytes of its body. Waits for at most `share`
    of the time left.

    Raises Failed when there is no final response, Unreachable if the page has none for anyone; an error status is a
    response like any other."""
    opener = _opener(job)
    redirects = []
    of_the_page = url == job.url
    url = ascii_url(url)
    while True:
        try:
            response = opener.open(
                urllib.request.Request(url, method=method, headers=_request_headers(job, accept)),
                timeout=min(share * job.remaining(), 30),
            )
        except (OSError, http.client.HTTPException, ValueError) as error:
            failure = Unreachable if of_the_page and _is_final(error) else Failed
            raise failure(f"{urlsplit(url).netloc}: {explain(error)}", {"redirects": redirects}) from None
        with response:
            location = response.headers.get("Location")
            if response.status in (301, 302, 303, 307, 308) and location:
                # http.client reads header bytes as Latin-1; what was sent may well be UTF-8.
                location = quote(location.strip().encode("latin-1", "replace"), safe=_URL_SAFE)
                target = urljoin(url, location)
                redirects.append({"url": url, "status": response.status, "location": target})
                if not re.match(r"https?://[^/]", target, re.IGNORECASE):
                    raise Failed(f"redirected to {target[:200]}, which is not http or https", {"redirects": redirects})
                if len(redirects) > MAX_REDIRECTS:
                    raise Failed(f"more than {MAX_REDIRECTS} redirects", {"redirects": redirects})
                if of_the_page:
                    job.report_redirect(url, ascii_url(target), response.status)
                refuse_private(job.url, target)
                url = ascii_url(target)
                continue
            result = Response(url, response.status, response.reason, response.headers.items(), redirects)
            if limit and method != "HEAD":
                _read_body(job, response, limit, result)
            return result


def _request_headers(job, accept):
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    if job.setting("USER_AGENT"):
        headers["User-Agent"] = job.setting("USER_AGENT")
    return headers


def _read_body(job, response, limit, result):
    pieces, size = [], 0
    try:
        while size <= limit and time.monotonic() < job.deadline:
            piece = response.read1(65536)
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        else:
            result.truncated = True
    except (OSError, http.client.HTTPException):
        result.truncated = True  # broken off: keep what came
    body = b"".join(pieces)
    announced = result.header("content-length")
    if announced.isdigit() and size < int(announced):
        result.truncated = True
    result.body = body[:limit]
