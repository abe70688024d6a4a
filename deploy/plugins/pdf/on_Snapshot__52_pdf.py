#!/usr/bin/env -S python3 -IB
"""The page printed to PDF by headless Chromium: pdf/output.pdf"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import chrome
import hook


def pdf(job):
    chrome.refuse_other_types(job)
    with chrome.Browser(job) as browser:
        loaded = browser.open()
        job.write("output.pdf", browser.pdf())
    chrome.unfinished(loaded)
    return "output.pdf", loaded.about()


hook.run("pdf", pdf)
