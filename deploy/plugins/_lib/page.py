"""The page of this snapshot, as another plugin saved it, or fetched here if none did.

A plugin that saves the page leaves page.json beside it: {url, status, content_type, path, complete}.
"""

import json
import re
import zlib
from dataclasses import dataclass
from urllib.parse import urlsplit

import charset
import fetch
from hook import Failed, NoResults, media_type

MAX_PAGE_BYTES = 8 << 20
_HTML_TYPES = ("text/html", "application/xhtml+xml")


@dataclass
class Page:
    url: str  # after redirects: what relative links are relative to
    content_type: str
    data: bytes
    source: str

    @property
    def media_type(self):
        return media_type(self.content_type)

    @property
    def text(self):
        return charset.decode(self.data, self.content_type)

    @property
    def is_html(self):
        if self.media_type in _HTML_TYPES:
            return True
        return not self.media_type and re.match(rb"\s*<(!doctype html|html|head|body|!--)", self.data[:1000], re.IGNORECASE)


def describe(job, name, url, status, content_type, path, complete):
    job.write(
        name,
        json.dumps({"url": url, "status": status, "content_type": content_type, "path": path, "complete": complete}) + "\n",
    )


def saved(job, plugin):
    """The page as `plugin` saved it, or None. Raises Failed if the site answered with an error."""
    about = job.sibling_json(f"{plugin}/page.json")
    status = about.get("status")
    if isinstance(status, int) and status >= 400:
        raise Failed(f"HTTP {status}")
    directory = (job.snapshot / plugin).resolve()
    path = (directory / str(about.get("path") or ".")).resolve()
    if not path.is_relative_to(directory) or not path.is_file():
        return None
    with open(path, "rb") as file:
        data = file.read(MAX_PAGE_BYTES)
    return Page(str(about.get("url") or job.url), str(about.get("content_type") or ""), _plain(data), plugin)


def load(job, prefer=("dom", "wget")):
    """The best copy of the page: the first of `prefer` that there is, else a fetch of our own."""
    error = None
    for plugin in prefer:
        try:
            page = saved(job, plugin)
        except Failed as outcome:  # a site may refuse one client and serve another
            error = outcome
            continue
        if page:
            return page
    if error:
        raise error
    response = fetch.request(job, job.url, limit=MAX_PAGE_BYTES, accept="text/html,application/xhtml+xml,*/*;q=0.5")
    job.report_response(response.url, response.status, response.header("content-type"))
    if response.status in (429, 503):
        job.report_rate_limit(urlsplit(response.url).hostname, response.status, response.header("retry-after"))
    if response.status >= 400:
        raise Failed(f"HTTP {response.status}")
    return Page(response.url, response.header("content-type"), _plain(response.body), "fetch")


def load_html(job, prefer=("dom", "wget")):
    page = load(job, prefer)
    if not page.is_html:
        raise NoResults(f"not an HTML page: {page.media_type or 'unknown type'}")
    return page


def _plain(data):
    """Some servers compress whatever the client says, and wget may keep it so."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, MAX_PAGE_BYTES)
    except zlib.error:
        return data
