"""Every page as axe-core sees it: wide and narrow, light and dark, for a guest and for an operator."""

import itertools
import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path

import chromium
from harness.full import some_of
from harness.case import PROGRAM, Case
from harness.wait import until
from test_pages import Site

TOOLS = Path(os.environ.get("HOLDFAST_PAGE_TOOLS", Path(PROGRAM or "/").parents[1] / "page-tools"))
NEVER = "00000000-0000-7000-8000-000000000000"
TEXT = """
[[ $name == bad* ]] && exit 10
printf 'Solar wind fills the space between the planets. The wind is a plasma.\\n' >content.txt
echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "content.txt", "output_json": {"language": "en"}}'"""

BROKEN = """
[[ $name == bad* ]] || exit 10
printf 'connecting to the site\nconnect: connection refused\n' >&2
exit 3"""


def axe():
    """The source of axe-core, from npm; fetched once. Its scripts are not run."""
    file = TOOLS / "node_modules/axe-core/axe.min.js"
    if not file.exists():
        TOOLS.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", TOOLS, "axe-core@4"]
        subprocess.run(command, check=True, timeout=600, stdout=subprocess.DEVNULL)
    return file.read_text()


class Collection:
    """A collection in which every page has something to show, with a worker that runs."""

    def __init__(self, case):
        self.site = Site(case, token="operator")
        place = self.place = self.site.place
        place.hook("text", "on_Snapshot__56_text.sh", TEXT)
        place.hook("fetch", "on_Snapshot__40_fetch.sh", BROKEN)
        done = place.run("add", "--label", "Reading list", "--tag", "reading", *self.urls("shot-1", "shot-2", "bad-3"))
        self.done = done.records[0]["crawl_id"]
        slow = ("--option", "TIMEOUT=1800")
        place.run("add", "--bg", "--label", "Nightly news", *slow, *self.urls("slow-1", "slow-2", "bad-4"))
        self.paused = place.run("add", "--bg", "--label", "A pause", *self.urls("later")).records[0]["id"]
        place.run("pause", self.paused, "--why", "until the evening")
        self.api("PUT", "v1/hosts/news.example", {"delay": "5s", "parallel": 2})
        self.api("PUT", "v1/hosts/slow.example", {"delay": "1m"})
        self.api("POST", "v1/hosts/slow.example/pause", {"why": "it is down"})
        self.api("POST", "v1/schedules", {"every": "daily", "urls": ["http://127.0.0.1:9/daily"], "label": "Daily"})
        self.worker = place.start("run", "--daemon")
        until("the hooks run", lambda: len(self.api("GET", "v1/running")["items"]) == 2)
        rows = self.api("GET", "v1/snapshots?limit=100")["items"]
        self.snapshots = {row["url"].rsplit("/", 1)[1]: row["id"] for row in rows}
        place.holdfast("account", "add", "bert", given="a long enough password\n")
        self.shelf = self.api("POST", "v1/shelves", {"name": "Shots"})["shelf"]
        pages = [self.snapshots["shot-1"], self.snapshots["shot-2"]]
        self.api("POST", "v1/shelve", {"shelf": "Shots", "ids": pages})

    @staticmethod
    def urls(*names):
        return [f"http://127.0.0.1:9/{name}" for name in names]

    def api(self, method, path, body=None):
        answer = self.site.get(
            "/api/" + path,
            method=method,
            headers={"Content-Type": "application/json"},
            body=None if body is None else json.dumps(body).encode(),
        )
        if answer.status >= 400:
            raise AssertionError(f"{method} {path}: {answer.text}")
        return json.loads(answer.text)

    def close(self):
        self.place.open("slow")
        self.worker.terminate()
        self.place.finish(self.worker)
        self.site.close()

    def pages(self):
        crawl, shot, bad = f"/crawl/{self.done}", self.snapshots["shot-1"], self.snapshots["bad-3"]
        return {
            "overview": "/",
            "crawls": "/crawls",
            "crawls-none": "/crawls?tag=no-such-tag",
            "add": "/add",
            "schedules": "/schedules",
            "workers": "/workers",
            "hosts": "/hosts",
            "failures": "/failures",
            "events": "/events",
            "search": "/search",
            "search-found": "/search?q=solar&host=127.0.0.1",
            "search-names": "/search?q=127.0.0.1:9/shot",
            "search-none": "/search?q=nothing-like-this",
            "crawl": crawl,
            "crawl-failed": crawl + "?outcome=failed",
            "crawl-paused": f"/crawl/{self.paused}",
            "snapshot": f"/snapshot/{shot}",
            "snapshot-failed": f"/snapshot/{bad}",
            "snapshot-started": f"/snapshot/{self.snapshots['slow-1']}",
            "snapshots": "/snapshots",
            "sites": "/sites",
            "shelves": "/shelves",
            "shelf": f"/shelf/{self.shelf}?as=timeline",
            "timeline": "/timeline?url=http%3A//127.0.0.1%3A9/shot-1",
            "personas": "/personas",
            "tokens": "/tokens",
            "sign-in": "/sign-in",
            "missing": f"/crawl/{NEVER}",
        }


@unittest.skipUnless(chromium.PROGRAM and shutil.which("npm"), "no Chromium or no npm here")
class Accessible(Case):
    def test_axe_finds_no_violation(self):
        collection = Collection(self)
        self.addCleanup(collection.close)
        browser = chromium.Chromium()
        self.addCleanup(browser.close)
        front, source = f"http://127.0.0.1:{collection.site.port}", axe()

        def look(name):
            for (width, height), dark in some_of(itertools.product(((1280, 900), (390, 844)), (False, True)), 4):
                shape = f"{name}-{'phone' if width < 600 else 'wide'}-{'dark' if dark else 'light'}"
                with self.subTest(shape):
                    browser.look(width, height, dark)
                    browser.value("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
                    browser.value(source + ";0")
                    report = browser.value("axe.run(document, {resultTypes: ['violations']})")
                    self.assertGreater(len(report["passes"]), 5)
                    found = [
                        f"{one['id']}: {one['help']}: {one['nodes'][0]['html']} {one['nodes'][0]['failureSummary']}"
                        for one in report["violations"]
                    ]
                    self.assertEqual(found, [], "\n".join(found))
                    self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), width)
                    browser.screenshot(shape)

        for role in ("guest", "operator"):
            if role == "operator":
                browser.open(front + "/sign-in")
                browser.value(f"document.getElementById('t').value = '{collection.site.token}'")
                browser.value("document.querySelector('main details').open = true")
                browser.click("form:has(#t) button")
            for name, path in collection.pages().items():
                browser.open(front + path)
                look(f"{role}-{name}")
        # What was refused, and the pages that are written into the archive.
        browser.open(front + "/add")
        browser.value("document.querySelector('textarea').value = 'nonsense'")
        browser.value("document.querySelector('main form.add button:not([formaction])').click()")
        browser.until("the form says what is wrong", "!document.querySelector('form.add [role=alert]').hidden")
        look("refused")
        # From the disk: served, they are in a sandbox where axe-core cannot run.
        root = collection.place.data / "archive"
        shot = next(one for one in collection.place.attempts() if collection.snapshots["shot-1"] in str(one))
        browser.open(f"file://{shot}/index.html")
        look("archived-snapshot")
        browser.open(f"file://{root}/crawls/{collection.done}/index.html")
        look("archived-crawl")


if __name__ == "__main__":
    unittest.main()
