"""The pages in a real Chromium: clicked through, by mouse and by keyboard, wide and narrow, light and dark; and
archived pages that mean harm."""

import contextlib
import html
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

import chromium
from harness.full import some_of
from harness.case import Case
from harness.wait import until
from test_pages import Site

# Contrast of the colours that text really has with what is behind it, after WCAG.
CONTRAST = """(() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || [0, 0, 0]).map(Number);
  const light = (c) => { const [r, g, b] = parse(c).slice(0, 3).map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor, p = parse(c); if (p.length < 4 || p[3] > 0) return c; } return 'rgb(255,255,255)'; };
  let worst = [99, ''];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
    const a = light(getComputedStyle(e).color), b = light(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < worst[0]) worst = [ratio, e.tagName + ' ' + e.className + ': ' + e.textContent.slice(0, 40)];
  }
  return worst;
})()"""
BEHIND = (
    "getComputedStyle(document.documentElement).backgroundColor + ' ' + getComputedStyle(document.body).backgroundColor"
)


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class Browser(Case):
    @classmethod
    def setUpClass(cls):
        cls.owner = cls("test_clicked_through")
        cls.site = Site(cls.owner)
        cls.front = f"http://127.0.0.1:{cls.site.port}/"

    @classmethod
    def tearDownClass(cls):
        cls.site.close()
        cls.owner.doCleanups()

    def setUp(self):
        self.browser = chromium.Chromium()
        self.addCleanup(self.browser.close)

    def heading(self):
        return self.browser.value("document.querySelector('h1').innerText")

    def assert_quiet(self):
        self.assertEqual(self.browser.complaints, [])
        own = re.compile(rf"^(http://127\.0\.0\.1:({self.site.port}|{self.site.files})/|data:|about:)")
        self.assertEqual(
            [url for url in self.browser.requests if not own.match(url)], [], "nothing is asked of anybody else"
        )

    def test_clicked_through(self):
        browser = self.browser
        browser.open(self.front)
        self.assertEqual(self.heading(), "Overview")
        browser.screenshot("front")
        browser.click("a[href^='/crawl/']")
        self.assertIn("label", self.heading())
        browser.screenshot("crawl")
        self.assertEqual(browser.value("document.querySelectorAll('.tile').length"), 2)
        browser.click(".tile h3 a")
        self.assertIn("/snapshot/", browser.value("location.pathname"))
        browser.screenshot("snapshot")
        browser.click(".ways a")
        self.assertEqual(browser.value("location.port"), str(self.site.files), "archived files are of another origin")
        browser.back()
        self.assertIn("/snapshot/", browser.value("location.pathname"))
        for path, words in (
            ("/workers", "Workers"),
            ("/sites", "Sites"),
            ("/schedules", "Schedules"),
            ("/lists", "Lists"),
        ):
            browser.click(f".bar nav a[href='{path}']")
            self.assertEqual(self.heading(), words)
            self.assertEqual(
                browser.value("document.querySelector('.bar nav a[aria-current]').getAttribute('href')"), path
            )
            browser.screenshot(path[1:])
        self.assert_quiet()

    def test_news_arrive_by_themselves(self):
        browser = self.browser
        browser.open(self.front)
        before = browser.value("document.querySelectorAll('#crawls a[href^=\"/crawl/\"]').length")
        self.site.place.run("add", "--bg", "--label", "brand new", "http://127.0.0.1:9/new")
        browser.until("the new crawl is shown", "document.querySelector('#crawls').innerText.includes('brand new')")
        self.assertGreater(browser.value("document.querySelectorAll('#crawls a[href^=\"/crawl/\"]').length"), before)
        self.assertEqual(browser.loads, 1, "without being loaded again")
        self.assert_quiet()

    def test_pages_of_what_runs_follow_it(self):
        browser, place = self.browser, self.site.place
        crawl = json.loads(place.run("add", "--bg", "http://127.0.0.1:9/slow", "http://127.0.0.1:9/slow2").out)["id"]
        browser.open(f"{self.front}crawl/{crawl}")
        self.assertEqual(browser.value("document.querySelectorAll('.tile').length"), 0)
        worker = place.start("run")
        try:
            tiles = (
                "[...document.querySelectorAll('#gallery .tile')].map(e => e.querySelector('.badge').innerText).join()"
            )
            browser.until("the gallery shows what was started", f"{tiles} === 'Started,Started'")
            self.assertEqual(browser.loads, 1, "without being loaded again")
            other = chromium.Chromium()
            self.addCleanup(other.close)
            other.open(browser.value("document.querySelector('.tile h3 a').href"))
            self.assertIn("Started", other.value("document.querySelector('#head').innerText"))
            events = chromium.Chromium()
            self.addCleanup(events.close)
            events.open(self.front + "events")
            place.open("slow")
            browser.until("the gallery shows what has ended", f"{tiles} === 'Succeeded,Succeeded'")
            other.until(
                "the snapshot's page does",
                "document.querySelector('#head').innerText.includes('Succeeded') && "
                "document.querySelector('#results').textContent.includes('hostile.html')",
            )
            events.until("the events do", f"document.querySelector('#events').innerText.includes('{crawl[-8:]}')")
            self.assertEqual((browser.loads, other.loads, events.loads), (1, 1, 1))
        finally:
            place.open("slow")
            place.finish(worker)
        self.assert_quiet()

    def test_the_screenshot_keeps_its_shape(self):
        browser = self.browser
        done = self.site.place.holdfast("add", "http://127.0.0.1:9/shot")
        snapshot = json.loads(done.out.splitlines()[0])["id"]
        for width, height in ((1280, 900), (390, 844)):
            browser.look(width, height, False)
            browser.open(f"{self.front}snapshot/{snapshot}")
            browser.until("the picture is there", "document.querySelector('.shot img').complete")
            natural, shown = browser.value(
                "(e => [e.naturalWidth / e.naturalHeight, e.clientWidth / e.clientHeight])(document.querySelector('.shot img'))"
            )
            self.assertAlmostEqual(natural, 1 / 3, places=2)
            self.assertAlmostEqual(shown, natural, places=2)
            browser.screenshot(f"shape-{width}")
        self.assert_quiet()

    def test_times_are_those_of_the_reader(self):
        browser = self.browser
        browser.ask("Emulation.setTimezoneOverride", timezoneId="America/New_York")
        browser.open(self.front)
        browser.open(browser.value("document.querySelector('a[href^=\"/crawl/\"]').href"))
        crawl = browser.value("location.pathname.slice(1)")
        # Lists of what is past say how long ago; the time is in the title.
        for page, relative in ((crawl, 0), ("events", 0), ("", 1), ("crawls", 1), ("failures", 1), ("search", 1)):
            browser.open(self.front + page)
            right = browser.value(
                """[...document.querySelectorAll('time')].map((e) => {
              const words = ('ago' in e.dataset ? e.title : e.textContent).split(' '), zone = words.pop();
              return [zone, Math.abs(new Date(words.join('T')) - new Date(e.dateTime)) < 1000];
            })"""
            )
            texts = browser.value("[...document.querySelectorAll('time[data-ago]')].map((e) => e.textContent)")
            self.assertEqual(bool(texts), bool(relative), page)
            for text in texts:
                self.assertRegex(text, r"^(just now|[1-9]\d? (minute|hour)s? ago)$")
            self.assertTrue(right)
            for zone, same in right:
                self.assertRegex(zone, "^(EST|EDT|GMT-[45])$")
                self.assertTrue(same)
        self.assert_quiet()

    def test_ages_grow_while_a_page_is_open(self):
        browser = self.browser
        browser.open(self.front + "failures")
        ages = "[...new Set([...document.querySelectorAll('time[data-ago]')].map((e) => e.textContent))].join()"
        self.assertRegex(browser.value(ages), "^(just now|[0-9]+ minutes? ago)$")
        # The clock of the page jumps and its timers run for a minute: running them for days takes a minute of CPU time.
        hours = 3_600_000
        for jump, shown in (
            (3 * hours, "=== '3 hours ago'"),
            (24 * hours, "=== '1 day ago'"),
            (4 * 24 * hours, "=== '5 days ago'"),
            (30 * 24 * hours, r".match(/^\d{4}-\d\d-\d\d$/)"),
        ):
            browser.value(f"(now => {{ Date.now = () => now() + {jump}; }})(Date.now)")

            def told(shown=shown):
                browser.ask("Emulation.setVirtualTimePolicy", policy="advance", budget=60_000)
                return browser.value(f"{ages} {shown}")

            until(f"its age is {shown}", told, 60)

    def test_by_keyboard(self):
        browser = self.browser
        browser.open(self.front)
        browser.key("/", "/")
        self.assertEqual(browser.value("document.activeElement.id"), "q")
        for letter in "good":
            browser.key(letter, letter)
        browser.enter()
        self.assertEqual(browser.value("location.pathname + location.search"), "/search?q=good")
        self.assertEqual(
            browser.value(
                "new Set([...document.querySelectorAll('main a[href^=\"/timeline\"]')].map(e => e.href)).size"
            ),
            1,
        )
        # Everything that can be clicked is reached, in the order in which it stands, and shows that it is.
        browser.open(self.front)
        reached = []
        for _ in range(60):
            browser.key("Tab")
            spot = browser.value(
                "(e => e === document.body ? null : {to: e.getAttribute('href') || e.id || e.tagName, "
                "shown: getComputedStyle(e).outlineStyle !== 'none' || getComputedStyle(e).boxShadow !== 'none'})(document.activeElement)"
            )
            if spot is None or (reached and spot["to"] == reached[0]["to"]):
                break
            reached.append(spot)
        self.assertEqual([spot["to"] for spot in reached if not spot["shown"]], [])
        wanted = browser.value(
            "[...document.querySelectorAll('a[href]:not([tabindex=\"-1\"])')].map(e => e.getAttribute('href'))"
        )
        self.assertEqual([spot["to"] for spot in reached if spot["to"][0] in "/#"], wanted)
        browser.value("document.querySelector('a[href^=\"/crawl/\"]').focus()")
        browser.enter()
        self.assertIn("/crawl/", browser.value("location.pathname"))
        self.assert_quiet()

    def test_narrow_and_dark(self):
        browser = self.browser
        browser.open(self.front)
        crawl = browser.value("document.querySelector('a[href^=\"/crawl/\"]').href")
        browser.open(crawl)
        snapshot = browser.value("document.querySelector('a[href^=\"/snapshot/\"]').href")
        for width, height, kind in ((390, 844, "phone"), (1280, 900, "wide")):
            for dark in (False, True):
                browser.look(width, height, dark)
                for name, url in (
                    ("front", self.front),
                    ("crawl", crawl),
                    ("snapshot", snapshot),
                    ("workers", self.front + "workers"),
                    ("failures", self.front + "failures"),
                    ("events", self.front + "events"),
                    ("search", self.front + "search?q=good"),
                ):
                    with self.subTest(f"{name}, {kind}, {'dark' if dark else 'light'}"):
                        browser.open(url)
                        self.assertLessEqual(
                            browser.value("document.documentElement.scrollWidth"), width, "nothing sticks out"
                        )
                        ratio, where = browser.value(CONTRAST)
                        self.assertGreaterEqual(ratio, 4.5, where)
                        shade = [
                            int(number)
                            for number in re.findall(r"\d+", re.sub(r"rgba\(0, 0, 0, 0\)", "", browser.value(BEHIND)))[
                                :3
                            ]
                        ]
                        self.assertEqual(sum(shade) < 300, dark, shade)
                        browser.screenshot(f"{name}-{kind}-{'dark' if dark else 'light'}")
        self.assert_quiet()

    def test_an_archived_page_reaches_nothing(self):
        browser = self.browser
        browser.open(self.front)
        browser.value("document.cookie = 'seen=1; path=/'; localStorage.setItem('seen', 1)")
        browser.click("a[href^='/crawl/']")
        good = browser.value(
            "[...document.querySelectorAll('.tile h3 a')].find(e => /good/.test(e.closest('.tile').innerText)).href"
        )
        browser.open(good)
        hostile = browser.value("[...document.querySelectorAll('.files a')].find(e => /hostile/.test(e.href)).href")
        picture = browser.value("[...document.querySelectorAll('.files a')].find(e => /picture/.test(e.href)).href")
        for url in (hostile, picture):
            browser.requests.clear()
            browser.open(url)
            self.assertEqual(browser.value("self.origin"), "null", "it is of no origin")
            self.assertEqual(
                [asked for asked in browser.requests if f":{self.site.port}/" in asked or "evil" in asked], []
            )
            self.assertEqual(browser.value("location.href"), url)
            for secret in ("document.cookie", "localStorage.length"):
                self.assertIn(
                    "SecurityError",
                    browser.value(f"(() => {{ try {{ return String({secret}) }} catch (e) {{ return e.name }} }})()"),
                )
            # Even the browser's own console cannot read a page of ours from there.
            self.assertEqual(
                browser.value(f"fetch('{self.front}live.json?at=/').then(() => 'read', () => 'refused')"), "refused"
            )
        browser.open(hostile)
        self.assertEqual(browser.value("document.getElementById('p').textContent"), "as it was")
        browser.screenshot("hostile")

    def open_in_firefox(self, url):
        with tempfile.TemporaryDirectory() as home:
            words = ["--headless", "--no-remote", "--profile", home, "--screenshot", home + "/page.png", url]
            done = subprocess.run(
                ["firefox-esr", *words], env={**os.environ, "HOME": home}, capture_output=True, timeout=120
            )
            self.assertEqual(done.returncode, 0, done.stderr[-1000:])

    @unittest.skipUnless(chromium.WITH_WINDOWS, "no Chromium with windows here")
    def test_an_archived_page_opens_no_connection(self):
        archived, elsewhere = Listener(self), Listener(self)
        browser = chromium.Chromium(program=chromium.WITH_WINDOWS)
        self.addCleanup(browser.close)
        live = f"http://127.0.0.1:{archived.port}/"
        inner = html.escape(f"<link rel=preconnect href={live}>")
        xhtml = "<html xmlns='http://www.w3.org/1999/xhtml'><head>{}</head><body/></html>"
        documents = {
            "plain.html": f"<!doctype html><link rel=preconnect href={live}><link rel=dns-prefetch href={live}>",
            "both.html": f"<LINK\nREL='stylesheet preconnect' href={live}>",
            "escaped.html": f"<link rel='pre&#99;onnect' href={live}>",
            "first.html": f"<link rel=preconnect rel=stylesheet href={live}>",
            "frames.html": f"<iframe src={live}></iframe><object data={live}></object><embed src={live}>"
            f'<iframe srcdoc="{inner}"></iframe><iframe src="data:text/html,{inner}"></iframe>',
            "loads.html": f"<img src={live}><video src={live} poster={live}></video><style>@import '{live}'</style>"
            f"<meta http-equiv=refresh content='0;url={live}'><link rel=stylesheet href={live}><body background={live}>",
            "prefixed.xhtml": f"<h:html xmlns:h='http://www.w3.org/1999/xhtml'><h:head><h:link rel='preconnect' href='{live}'/>"
            "</h:head></h:html>",
            "entity.xhtml": f"<!DOCTYPE html [<!ENTITY e \"&#60;link rel='preconnect' href='{live}'/>\">]>"
            + xhtml.format("&e;"),
            "drawing.svg": "<svg xmlns='http://www.w3.org/2000/svg'><link xmlns='http://www.w3.org/1999/xhtml' "
            f"rel='preconnect' href='{live}'/></svg>",
        }
        attempt = self.site.place.attempts()[0]
        there = f"http://127.0.0.1:{self.site.files}/{attempt.relative_to(self.site.place.data / 'archive')}/"
        wide = {"wide.html": documents["plain.html"].encode("utf-16")}
        for name, text in ({name: text.encode() for name, text in documents.items()} | wide).items():
            (attempt / name).write_bytes(text)
            browser.open(there + name)
        for name in some_of([*documents, *wide], 4):
            if shutil.which("firefox-esr"):
                self.open_in_firefox(there + name)
        # The same from a server that leaves it as it is: then the browser has had the time.
        page = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<link rel=preconnect href=http://127.0.0.1:{elsewhere.port}/>"
        browser.open(f"http://127.0.0.1:{Listener(self, page.encode()).port}/")
        until("a hint is followed", lambda: elsewhere.count)
        if shutil.which("firefox-esr"):
            before = elsewhere.count
            self.open_in_firefox(f"http://127.0.0.1:{Listener(self, page.encode()).port}/")
            self.assertGreater(elsewhere.count, before)
        self.assertEqual(archived.count, 0)


class Listener:
    """Counts connections, and answers each."""

    def __init__(self, case, answer=b""):
        self.count, self._socket = 0, socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        case.addCleanup(self._socket.close)
        threading.Thread(target=self._serve, args=(answer,), daemon=True).start()

    def _serve(self, answer):
        with contextlib.suppress(OSError):
            while True:
                wire = self._socket.accept()[0]
                self.count += 1
                with wire:
                    if answer:
                        wire.recv(65536)
                        wire.sendall(answer)


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class Operator(Case):
    def test_signed_in_everything_is_done_in_the_browser(self):
        site = Site(self, token="operator")
        self.addCleanup(site.close)
        browser = chromium.Chromium()
        self.addCleanup(browser.close)
        front = f"http://127.0.0.1:{site.port}"

        def fill(name, value, form="main"):
            browser.value(
                f"(e => {{ e.value = {json.dumps(value)}; e.dispatchEvent(new Event('input', {{bubbles: true}})) }})"
                f"(document.querySelector('{form} [name={name}]'))"
            )

        def press(words):
            browser.value(
                "document.querySelectorAll('[data-pressed]').forEach(e => e.removeAttribute('data-pressed'));"
                f"[...document.querySelectorAll('main button')].find(e => e.innerText === {json.dumps(words)}"
                " || e.textContent === " + json.dumps(words) + ").setAttribute('data-pressed', '')"
            )
            browser.value(
                "(e => { for (const d of document.querySelectorAll('details')) if (d.contains(e)) d.open = true })"
                "(document.querySelector('[data-pressed]'))"
            )
            browser.click("[data-pressed]")

        browser.open(front + "/crawls")
        self.assertFalse(browser.value("!!document.querySelector('main form[method=post]')"), "a guest only reads")
        browser.click("header a[href^='/sign-in']")
        fill("token", site.token)
        press("Sign in")
        self.assertEqual(browser.value("location.pathname"), "/crawls")
        self.assertEqual(browser.value("document.cookie"), "", "out of the reach of scripts")

        browser.click("nav a[href='/add']")
        browser.screenshot("add")
        fill("text", "http://127.0.0.1:9/slow-a\nhttp://127.0.0.1:9/bad\n")
        fill("label", "from the page")
        fill("tags", "x, y")
        press("Archive now")
        self.assertIn("/crawl/", browser.value("location.pathname"))
        self.assertEqual(browser.value("document.querySelector('h1').innerText"), "from the page")
        crawl = browser.value("location.pathname")
        press("Pause")
        self.assertIn("paused", browser.value("document.querySelector('#crawl').innerText"))
        press("Resume")
        browser.screenshot("crawl-operator")

        worker = site.place.start("run")
        try:
            browser.until("progress shows", "/Started/.test(document.querySelector('#gallery').innerText)")
            loads = browser.loads
            site.place.open("slow")
            browser.until("it is done", "/Retry failed/.test(document.querySelector('#acts').innerText)")
            self.assertEqual(browser.loads, loads, "without being loaded again")
        finally:
            site.place.open("slow")
            site.place.finish(worker)

        browser.open(front + crawl + "?outcome=failed")
        browser.value("document.querySelector('input[name=id][form=bulk]').click()")
        fill("add_tags", "seen", "#bulk")
        browser.screenshot("crawl-failed")
        press("Add tag")
        self.assertIn("outcome=failed", browser.value("location.search"), "back where it was")
        (row,) = site.place.run("list", "snapshots", "--tag", "seen").records
        self.assertTrue(row["url"].endswith("/bad"))

        browser.open(front + "/crawls?sort=failed&tag=x")
        self.assertEqual(browser.value("document.querySelectorAll('#crawls tbody tr').length"), 1)
        browser.value("document.querySelector('[data-all]').click()")  # all that is shown
        press("Retry failed")
        self.assertNotEqual(browser.value("location.pathname"), crawl, "a new crawl")
        press("Cancel for ever")
        self.assertIn("ancelled", browser.value("document.querySelector('#crawl').innerText"))

        browser.open(front + "/hosts")
        new = "form:has(input[name=id][required])"
        fill("id", "slow.example", new)
        fill("delay", "5s", new)
        fill("parallel", "1", new)
        press("Set limits")
        self.assertIn("slow.example", browser.value("document.querySelector('#hosts').innerText"))
        fill("delay", "90s", "#hosts")
        press("Save")
        self.assertIn("1 min 30 s", browser.value("document.querySelector('#hosts').innerText"))
        press("Save")  # what it says is what it takes
        self.assertIn("1 min 30 s", browser.value("document.querySelector('#hosts').innerText"))
        press("Pause")
        self.assertIn("Resume", browser.value("document.querySelector('#hosts').innerText"))
        browser.screenshot("hosts-operator")

        for width, kind in ((390, "phone"), (1280, "wide")):
            for dark in (False, True):
                browser.look(width, 844, dark)
                for name, path in (
                    ("add", "/add"),
                    ("crawls", "/crawls"),
                    ("crawl-operator", crawl),
                    ("crawl-failed", crawl + "?outcome=failed"),
                    ("hosts", "/hosts"),
                    ("workers", "/workers"),
                    ("front", "/"),
                ):
                    with self.subTest(f"{name}, {kind}, {dark}"):
                        browser.open(front + path)
                        self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), width)
                        ratio, where = browser.value(CONTRAST)
                        self.assertGreaterEqual(ratio, 4.5, where)
                        browser.screenshot(f"operator-{name}-{kind}-{'dark' if dark else 'light'}")
        browser.open(front)
        browser.click(".who button")
        self.assertFalse(browser.value("!!document.querySelector('main form[method=post]')"))
        self.assertEqual(browser.complaints, [])


if __name__ == "__main__":
    unittest.main()
