#!/usr/bin/env -S python3 -IB
"""The page's HTML after its scripts have run, from headless Chromium: dom/output.html

dom/page.json says which URL it came from, for the plugins after this one.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import chrome
import hook
import page


def dom(job):
    chrome.refuse_other_types(job)
    with chrome.Browser(job) as browser:
        loaded = browser.open()
        html = browser.html()
    # The browser gives text and we write UTF-8, whatever the page's <meta> says: a byte order mark wins over it.
    job.write("output.html", "\ufeff" + html)
    page.describe(job, "page.json", loaded.url, loaded.status, "text/html; charset=utf-8", "output.html", loaded.complete)
    chrome.unfinished(loaded)
    return "output.html", loaded.about()


hook.run("dom", dom)
