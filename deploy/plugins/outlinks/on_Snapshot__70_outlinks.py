#!/usr/bin/env -S python3 -IB
"""The links that lead on from the page: outlinks/urls.jsonl, one Snapshot record a line.

The runner reads that file; nothing but the result is printed. Links come from the page as the browser left
it and as wget got it: scripts add some and remove others. Pages, frames, feeds, sitemaps, bookmark files,
JSON lines and plain text are understood.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import hook
import links
import page


def outlinks(job):
    limit = int(job.number("OUTLINKS_MAX", 10000))
    found, cut = {}, False
    for document in documents(job):
        for link in links.find(document):
            url = link["url"]
            if not url or url == links.absolute(document.url, document.url) or url == job.url:
                continue
            known = found.get(url)
            if known is None and len(found) >= limit:
                cut = True
                break
            title = hook.one_line(link["title"][:10000], links.MAX_TITLE)
            record = {key: value for key, value in link.items() if key in ("tags", "bookmarked_at") and value}
            record = {"type": "Snapshot", "url": url, "title": title, **record}
            if known is None or len(title) > len(known["title"]):
                found[url] = record
    job.write("urls.jsonl", "".join(json.dumps(hook.clean(record)) + "\n" for record in found.values()))
    if not found:
        raise hook.NoResults("no links")
    return f"{len(found)} link{'' if len(found) == 1 else 's'}" + (f", the first of more (OUTLINKS_MAX={limit})" if cut else ""), {"links": len(found)}


def documents(job):
    """Every saved copy of the page, else one fetched here."""
    copies = []
    for plugin in ("wget", "dom"):
        try:
            copies.append(page.saved(job, plugin))
        except hook.Failed:
            pass
    copies = [copy for copy in copies if copy]
    return copies or [page.load(job)]


hook.run("outlinks", outlinks)
