#!/usr/bin/env -S python3 -IB
"""The icon of the site: what the page links as its icon, else /favicon.ico."""

import re
import sys
from pathlib import Path
from urllib.parse import urljoin

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import fetch
import hook
import page
from html_scan import tokens

MAX_ICON_BYTES = 1 << 20
KINDS = (
    ("ico", re.compile(rb"\x00\x00[\x01\x02]\x00")),
    ("png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("gif", re.compile(rb"GIF8[79]a")),
    ("jpg", re.compile(rb"\xff\xd8\xff")),
    ("webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
    ("svg", re.compile(rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]{0,300}>|<!--.{0,2000}?-->|<!doctype[^>]{0,300}>|\s)*<svg[\s>]", re.I | re.S)),
)


def favicon(job):
    base, linked = candidates(job)
    for url in [*linked[:4], urljoin(base, "/favicon.ico")]:
        try:
            fetch.refuse_private(job.url, url)
            response = fetch.request(job, url, limit=MAX_ICON_BYTES, accept="image/*")
        except hook.Failed:
            continue  # the next candidate may do
        kind = next((name for name, mark in KINDS if mark.match(response.body)), None)
        if response.status == 200 and kind and not response.truncated:
            name = f"favicon.{kind}"
            job.write(name, response.body)
            return name, {"url": response.url, "size": len(response.body)}
    raise hook.NoResults("the site has no icon")


def candidates(job):
    """The page's final URL and the icons it links, best first."""
    try:
        document = page.load_html(job, prefer=("wget", "dom"))
    except hook.NoResults:
        return job.url, []
    base, icons = document.url, []
    for kind, name, attributes in tokens(document.text):
        if kind == "start" and name == "base" and attributes.get("href"):
            base = join(document.url, attributes["href"]) or document.url
        elif kind == "start" and name == "link" and attributes.get("href"):
            words = attributes.get("rel", "").lower().split()
            if "icon" in words:
                icons.insert(sum(1 for rank, _ in icons if rank == 0), (0, attributes["href"]))
            elif "apple-touch-icon" in words:
                icons.append((1, attributes["href"]))
        elif kind == "start" and name == "body":
            break
    urls = [join(base, href) for _, href in icons]
    return document.url, [url for url in urls if url]


def join(base, href):
    try:
        url = urljoin(base, href.strip())
    except ValueError:
        return None
    return url if re.match(r"https?://[^/]", url, re.IGNORECASE) else None


hook.run("favicon", favicon)
