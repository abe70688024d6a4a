#!/usr/bin/env -S python3 -IB
"""The title of the page: title/title.txt"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import hook
import page
from html_scan import tokens

MAX_CHARACTERS = 1000


def title(job):
    document = page.load_html(job)
    text = find_title(document.text)
    if not text:
        raise hook.NoResults("the page has no title")
    job.write("title.txt", text + "\n")
    return text, {"source": document.source}


def find_title(text):
    """The first <title> that is not the tool tip of a drawing."""
    drawings, inside = 0, False
    for kind, name, _ in tokens(text):
        if name == "svg" and kind != "text":
            drawings = max(0, drawings + (1 if kind == "start" else -1))
        elif kind == "start":
            inside = name == "title" and not drawings
        elif kind == "end":
            inside = False
        elif inside and name.strip():
            return hook.one_line(name, MAX_CHARACTERS)
    return ""


hook.run("title", title)
