#!/usr/bin/env -S python3 -IB
"""A picture of the whole page, as headless Chromium shows it: screenshot/screenshot.png"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import chrome
import hook


def screenshot(job):
    chrome.refuse_other_types(job)
    with chrome.Browser(job) as browser:
        loaded = browser.open()
        job.write("screenshot.png", browser.screenshot(int(job.number("SCREENSHOT_MAX_HEIGHT", 16000))))
    chrome.unfinished(loaded)
    return "screenshot.png", loaded.about()


hook.run("screenshot", screenshot)
