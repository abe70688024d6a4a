#!/usr/bin/env -S python3 -IB
"""The readable text of the page: text/content.txt, and text/content.html without scripts or styles."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import hook
import page
import readable

MAX_PLAIN_BYTES = 4 << 20


def text(job):
    document = page.load(job)
    if document.media_type == "text/plain":
        words = hook.clean(document.text[:MAX_PLAIN_BYTES])
        found = [readable.Block("pre", True, False, [words], len(words))]
    elif document.is_html:
        found = readable.blocks(hook.clean(document.text))
    else:
        raise hook.NoResults(f"not a page of text: {document.media_type or 'unknown type'}")
    content = readable.as_text(found)
    if not content.strip():
        raise hook.NoResults("the page has no text")
    title = next((block.text for block in found if block.tag == "h1"), document.url)
    job.write("content.txt", content)
    job.write("content.html", readable.as_html(found, title, document.url))
    return "content.txt", {"words": len(content.split()), "source": document.source}


hook.run("text", text)
