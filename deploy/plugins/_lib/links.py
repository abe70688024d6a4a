"""The links in a page, whatever kind of page it is. Each is {url, title, and for bookmarks tags, bookmarked_at}."""

import json
import re
import xml.etree.ElementTree as xml
from datetime import datetime, timezone
from urllib.parse import urldefrag, urljoin

from html_scan import tokens

MAX_URL = 2048
MAX_TITLE = 300

_PLAIN_URL = re.compile(r"https?://[^\s<>\"'`{}|\\^\x00-\x1f]{3,2048}", re.IGNORECASE)


def absolute(base, href):
    """The http(s) URL that `href` means on a page at `base`, without its fragment; None if it means none."""
    href = re.sub(r"[\t\r\n]", "", href.strip(" \t\r\n\f\x00"))
    if not href or len(href) > MAX_URL or re.fullmatch(r"https?:/*", href, re.IGNORECASE):
        return None
    try:
        url = urldefrag(urljoin(base, href))[0]
    except ValueError:
        return None
    if not re.match(r"https?://[^/?#\s]", url, re.IGNORECASE) or len(url) > MAX_URL:
        return None
    return url.replace(" ", "%20")


def find(document):
    """Yields the links of a page.Page, in order, possibly more than once."""
    kind, text = document.media_type, document.text
    start = text[:2000].lstrip("\ufeff \t\r\n").lower()
    if "<!doctype netscape-bookmark-file" in start:
        return bookmarks(text, document.url)
    if document.is_html:
        return in_html(text, document.url)
    if kind in ("application/json", "application/jsonl", "application/x-ndjson", "application/jsonlines") or start[:1] in "{[":
        return in_json(text, document.url)
    if kind.endswith("xml") or start.startswith(("<?xml", "<rss", "<feed", "<urlset", "<sitemapindex")):
        return in_feed(document.data, text, document.url)
    if kind.startswith("text/") or not kind:
        return in_text(text)
    return iter(())


def in_html(text, url):
    base, anchor, words = url, None, []
    for kind, name, attributes in tokens(text):
        if kind == "text":
            if anchor is not None and len(words) < 50:
                words.append(name)
            continue
        if anchor is not None and name == "a":
            yield {"url": anchor, "title": "".join(words)}
            anchor = None
        if kind != "start":
            continue
        if name == "base" and base == url and attributes.get("href"):
            base = urljoin_or(url, attributes["href"])
        elif name == "a" and "href" in attributes:
            anchor, words = absolute(base, attributes["href"]), []
        elif name == "area" and "href" in attributes:
            yield {"url": absolute(base, attributes["href"]), "title": attributes.get("alt", "")}
        elif name in ("frame", "iframe") and attributes.get("src"):
            yield {"url": absolute(base, attributes["src"]), "title": attributes.get("title", "")}
        elif name == "link" and {"next", "prev"} & set(attributes.get("rel", "").lower().split()):
            yield {"url": absolute(base, attributes.get("href", "")), "title": ""}
        elif name == "img" and anchor is not None:
            words.append(attributes.get("alt", ""))
    if anchor is not None:
        yield {"url": anchor, "title": "".join(words)}


def urljoin_or(url, href):
    try:
        return urljoin(url, href.strip())
    except ValueError:
        return url


def bookmarks(text, url):
    """The file that browsers export: <DT><A HREF=... ADD_DATE=seconds TAGS="a,b">title</A>"""
    link = None
    for kind, name, attributes in tokens(text):
        if kind == "start" and name == "a":
            link = {"url": absolute(url, attributes.get("href", "")), "title": ""}
            if attributes.get("tags"):
                link["tags"] = attributes["tags"]
            added = attributes.get("add_date", "")
            if added.isdecimal() and len(added) <= 10:
                link["bookmarked_at"] = datetime.fromtimestamp(int(added), timezone.utc).isoformat()
        elif kind == "text" and link:
            link["title"] += name
        elif kind == "end" and name == "a" and link:
            yield link
            link = None


def in_feed(data, text, url):
    """RSS, Atom and sitemaps; a broken one is searched like plain text."""
    try:
        root = xml.fromstring(data)
    except (xml.ParseError, ValueError, LookupError):
        yield from in_text(text)
        return
    for element in root.iter():
        name = local_name(element)
        if name in ("item", "entry"):
            yield from in_entry(element, url)
        elif name == "loc":
            yield {"url": absolute(url, element.text or ""), "title": ""}


def in_entry(entry, url):
    title = next(("".join(child.itertext()) for child in entry if local_name(child) == "title"), "")
    for child in entry:
        if local_name(child) != "link":
            continue
        if child.get("href") is None:
            yield {"url": absolute(url, child.text or ""), "title": title}
        elif child.get("rel", "alternate") == "alternate":
            yield {"url": absolute(url, child.get("href")), "title": title}


def local_name(element):
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def in_json(text, url):
    """One JSON object a line, or an array of them, with a url (or href, link)."""
    try:
        whole = json.loads(text)
        items = whole if isinstance(whole, list) else [whole]
    except (ValueError, RecursionError):
        items = (parse_line(line) for line in text.splitlines())
    for item in items:
        if isinstance(item, str):
            item = {"url": item}
        if not isinstance(item, dict):
            continue
        href = next((item[key] for key in ("url", "href", "link") if isinstance(item.get(key), str)), "")
        link = {"url": absolute(url, href), "title": str(item.get("title") or item.get("description") or "")}
        tags = item.get("tags")
        if tags:
            link["tags"] = ",".join(map(str, tags)) if isinstance(tags, list) else str(tags)
        if isinstance(item.get("bookmarked_at"), str):
            link["bookmarked_at"] = item["bookmarked_at"]
        yield link


def parse_line(line):
    try:
        return json.loads(line) if line.strip() else None
    except (ValueError, RecursionError):
        return None


def in_text(text):
    for match in _PLAIN_URL.finditer(text):
        url = match[0].rstrip(".,;:!?")
        while url.endswith(")") and url.count(")") > url.count("("):
            url = url[:-1].rstrip(".,;:!?")
        yield {"url": absolute(url, url), "title": ""}
