"""The page of a URL: a bar for each capture, its neighbours, and any two of them compared; the hosts that one has."""

import datetime
import importlib.util
import json
import re
import shutil
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import chromium
from harness.web import Handler
from served import Served

ROOT = Path(__file__).resolve().parents[2]
OBSERVE = ROOT / "deploy/observe"
WORDS = [
    "Cod costs ten crowns this morning.",
    "Cod costs ten crowns this morning.",
    "Herring is sold out until Tuesday.",
]


class Site(Handler):
    captured = 0

    def do_GET(self):
        if self.path == "/missing":
            return self.send_error(404)
        words = WORDS[Site.captured]
        self.send_page(
            f"<title>Market</title><h1>Market</h1><p>The market opens at six.</p><p>{words}</p>", "text/html"
        )


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class Timeline(Served):
    SITE = Site

    @classmethod
    def capture(cls):
        cls.url = cls.web.url + "/market"
        for Site.captured in range(len(WORDS)):
            cls.place.run("add", "--plugins", "screenshot,dom,title,text", cls.url)

    @property
    def ids(self):
        return [row["id"] for row in self.rows][::-1]

    def get(self, path):
        try:
            with urllib.request.urlopen(self.front + path) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return str(error.code)

    @property
    def timeline(self):
        return "timeline?url=" + urllib.parse.quote(self.url)

    def test_mementos(self):
        """TimeMap, TimeGate and the pages of snapshots agree (RFC 7089)."""
        listed = json.loads(self.get("timemap/json/" + self.url))
        found = [one["uri"].rsplit("/", 1)[1] for one in listed["mementos"]["list"]]
        self.assertEqual(found, self.ids)
        links = self.get("timemap/link/" + self.url)
        self.assertEqual(links.count("memento"), 3)
        self.assertIn(f'<{self.url}>; rel="original"', links)

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_):
                return None

        def gate(when):
            request = urllib.request.Request(
                f"{self.front}timegate/{self.url}", headers={"Accept-Datetime": when} if when else {}
            )
            with self.assertRaises(urllib.error.HTTPError) as answer:
                urllib.request.build_opener(Stay).open(request)
            with answer.exception as error:
                return error.code, error.headers

        status, headers = gate("Sat, 01 Jan 2000 00:00:00 GMT")
        self.assertEqual(status, 302)
        self.assertIn("accept-datetime", ", ".join(headers.get_all("Vary")).lower())
        self.assertTrue(headers["Location"].endswith("/snapshot/" + self.ids[0]))
        self.assertTrue(gate("")[1]["Location"].endswith("/snapshot/" + self.ids[-1]))
        self.assertEqual(gate("yesterday")[0], 400)
        with urllib.request.urlopen(headers["Location"]) as page:
            self.assertIn(f'{page.headers["Memento-Datetime"]}"', page.headers["Link"])
            self.assertIn('rel="first memento"', page.headers["Link"])
        self.assertEqual(self.get("timemap/link/http://nowhere.test/"), "404")

    @unittest.skipUnless(importlib.util.find_spec("memento_client"), "no memento_client here (PyPI)")
    def test_a_client_of_mementos_agrees(self):
        from memento_client import MementoClient

        client = MementoClient(timegate_uri=self.front + "timegate/", check_native_timegate=False)
        found = client.get_memento_info(self.url, datetime.datetime(2000, 1, 1))
        self.assertEqual(found["original_uri"], self.url)
        self.assertEqual(found["mementos"]["closest"]["uri"], [self.front + "snapshot/" + self.ids[0]])
        self.assertEqual(found["mementos"]["last"]["uri"], [self.front + "snapshot/" + self.ids[-1]])

    def test_a_bar_for_each_capture(self):
        page = self.get(self.timeline)
        self.assertIn("3 captures", page)
        heights = [float(h) for h in re.findall(r'<rect class="(?:ok|mute)"[^>]* height="([^"]+)"', page)]
        self.assertEqual(len(heights), 3)
        self.assertEqual(heights[0], heights[1], "nothing changed")
        self.assertGreater(heights[2], heights[1])
        self.assertEqual(re.findall(r'<a href="/snapshot/([^"]+)" aria-label', page), self.ids, "the oldest first")
        self.assertRegex(page, r"<title>[^<]*: text, [^<]*words</title>")
        older = self.get(f"{self.timeline}&before={self.ids[1]}")
        self.assertEqual(re.findall(r'<a href="/snapshot/([^"]+)" aria-label', older), self.ids[:1])
        self.assertEqual(self.get("timeline?url=http%3A%2F%2Fnever.example%2F"), "404")

    def test_a_capture_leads_to_its_neighbours(self):
        middle = self.get(f"snapshot/{self.ids[1]}")
        for href in (
            f"/snapshot/{self.ids[0]}",
            f"/snapshot/{self.ids[2]}",
            f"/compare?a={self.ids[0]}&amp;b={self.ids[1]}",
            "/" + self.timeline,
        ):
            self.assertIn(f'href="{href}"', middle)
        self.assertNotIn('rel="prev"', self.get(f"snapshot/{self.ids[0]}"))
        self.assertNotIn('rel="next"', self.get(f"snapshot/{self.ids[2]}"))
        self.assertIn("How it was captured", middle)

    def test_any_two_are_compared(self):
        browser = chromium.Chromium()
        self.addCleanup(browser.close)
        browser.open(self.front + self.timeline)
        browser.value(f"document.querySelector(\"input[name=a][value='{self.ids[2]}']\").click()")
        browser.value(f"document.querySelector(\"input[name=b][value='{self.ids[0]}']\").click()")
        browser.click("form[action='/compare'] button")
        shown = "document.querySelector('.diff').innerText"
        self.assertIn("Herring", browser.value("document.querySelector('.diff td:last-child ins').innerText"))
        self.assertIn("Cod", browser.value(shown), "in the order of time, however they were chosen")
        seen = (
            "[...document.querySelectorAll('.pair img')].filter(i => i.getClientRects().length).map(i => i.alt).join()"
        )
        self.assertEqual(browser.value(seen), "The page before,The page now")
        browser.value("document.querySelector('input[name=side][value=is]').click()")
        self.assertEqual(browser.value(seen), "The page now")
        self.assertEqual(browser.complaints, [])
        same = self.get(f"compare?a={self.ids[0]}&b={self.ids[1]}")
        self.assertIn("0 words added", same)
        for path in (f"compare?a={self.ids[0]}", "compare?a=x&b=y", "compare"):
            self.assertEqual(self.get(path), "404", path)

    def test_the_overview_has_news_causes_and_curves(self):
        page = self.get("")
        changed = page.partition('id="changed"')[2].partition("</section>")[0]
        self.assertEqual(re.findall(r"/compare\?a=([^&]+)&amp;b=([^\"]+)", changed), [tuple(self.ids[1:3])])
        for span, bars in (("day", 24), ("month", 30), ("year", 52)):
            shown = self.get(f"?range={span}").partition('id="curves"')[2]
            pages = shown.partition("</svg>")[0]
            self.assertEqual(pages.count("<title>"), bars)
            self.assertRegex(pages, r"<title>[^<]*: [1-9]\d* succeeded")
            self.assertIn("As a table", shown)
        self.assertRegex(page, r'id="attention" data-digest="\w+"></div>', "nothing needs a person")

    def test_a_page_elsewhere_leads_to_the_form(self):
        token = self.place.holdfast("token", "add", "drag", "--role", "operator").out.strip().splitlines()[-1]
        token = json.loads(token)["token"] if token.startswith("{") else token
        browser = chromium.Chromium()
        self.addCleanup(browser.close)
        browser.open(self.front + "sign-in?next=/add")
        browser.value(f"document.querySelector('#t').value = {json.dumps(token)}")
        browser.click("form button")
        link = browser.value("document.querySelector('[data-bookmarklet]').href")
        self.assertRegex(link, r"^javascript:void\(open\('http://127\.0\.0\.1:\d+/add\?url=")
        target = self.front + "add?url=" + urllib.parse.quote("https://example.org/?a=1&b=<i>", safe="")
        elsewhere = self.web.url.replace("127.0.0.1", "localhost") + "/market"
        browser.open(elsewhere)
        before = len(self.place.run("list", "crawls", "--json").records)
        browser.value(f"void (location.href = {json.dumps(target)})")
        browser.until("the form is there", "document.querySelector('form.add textarea') !== null")
        self.assertEqual(
            browser.value("document.querySelector('form.add textarea').value"), "https://example.org/?a=1&b=<i>"
        )
        self.assertEqual(len(self.place.run("list", "crawls", "--json").records), before, "a GET adds nothing")
        manifest = json.loads(self.get("manifest.json"))
        self.assertEqual(manifest["share_target"]["action"], "/add")
        shared = self.get("add?text=https%3A%2F%2Fexample.org%2Fshared")
        self.assertIn("token with the role operator", shared)

    def test_dashboard_and_alerts_use_what_there_is(self):
        there = set(re.findall(r"^# TYPE (holdfast_\w+)", self.get("metrics"), re.M))
        rules = (OBSERVE / "rules.yml").read_text()
        asked = set(re.findall(r"holdfast_\w+", rules))
        for panel in json.loads((OBSERVE / "dashboard.json").read_text())["panels"]:
            for target in panel["targets"]:
                asked |= set(re.findall(r"holdfast_\w+", target["expr"]))
        self.assertEqual(asked - there, set())
        self.assertGreater(len(asked), 12)
        for sentence in ("no worker is running", "due, but no worker takes it"):  # as v_stuck has them
            self.assertIn(f"summary: {sentence}\n", rules)
            self.assertIn(f"'{sentence}'", (ROOT / "migrations/functions/91_views_operate.sql").read_text())
        promtool = shutil.which("promtool")
        if promtool:
            done = subprocess.run([promtool, "check", "rules", OBSERVE / "rules.yml"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("7 rules found", done.stdout)

    def test_z_sites_have_their_sums(self):
        def sums():
            row = self.place.run("list", "sites", "--json").records[0]
            return [row[name] for name in ("host", "pages", "captures", "failed")]

        def sql(statement):
            return self.place.holdfast("psql", "--role", "owner", "-Atqc", statement).out

        self.assertEqual(sums(), ["127.0.0.1", 1, 3, 0])
        self.assertIn("127.0.0.1", self.get("sites"))
        self.assertIn("None.", self.get("sites?url=nowhere"))
        hours = self.place.run("list", "periods", "--json").records
        self.assertEqual(sum(row["succeeded"] for row in hours if row["grain"] == "day"), 3)
        self.assertEqual(sum(row["changed"] for row in hours if row["grain"] == "hour"), 1)
        before = sql("select sum(succeeded), sum(bytes), sum(changed) from holdfast.v_period where grain = 'day'")
        sql(
            "set holdfast.change_sealed = on; update holdfast.snapshot_sealed set sealed_at = sealed_at - interval '90 s'"
        )
        for _ in range(2):  # nothing is counted twice
            for task in ("sites", "periods"):
                sql(f"select holdfast.maintenance_{task}(t) from holdfast.maintenance_task t where t.name = '{task}'")
        self.assertEqual(sql("select host, pages, captures, failed from holdfast.site"), "127.0.0.1|1|3|0\n")
        self.assertEqual(sums(), ["127.0.0.1", 1, 3, 0])
        self.assertEqual(
            sql("select sum(succeeded), sum(bytes), sum(changed) from holdfast.v_period where grain = 'day'"), before
        )
        self.place.holdfast("add", "--plugins", "title", self.url)
        self.assertEqual(sums(), ["127.0.0.1", 1, 4, 0], "one that is not in the table yet")
        newest = self.place.run("list", "snapshots", "--json").records[0]["id"]
        self.place.holdfast("remove", "--yes", newest)
        self.assertEqual(sums(), ["127.0.0.1", 1, 3, 0])
        sql(f"select holdfast.snapshot_remove('{self.ids[0]}', 'test')")
        self.assertEqual(sums(), ["127.0.0.1", 1, 2, 0], "one that is")
        self.assertEqual(sql("select captures from holdfast.site"), "2\n")
        self.place.holdfast("add", "--plugins", "dom,title", self.web.url + "/missing", expect=None)
        cause = self.get("").partition('id="attention"')[2].partition("</section>")[0]
        self.assertIn("1 page of 127.0.0.1 failed", cause)
        self.assertIn("HTTP 404", cause)
        self.assertIn("/search?outcome=failed&amp;host=127.0.0.1", cause)


if __name__ == "__main__":
    unittest.main()
