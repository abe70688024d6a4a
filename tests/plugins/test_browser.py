"""browser, dom, screenshot and pdf, by a real Chromium."""

import base64
import itertools
import os
import re
import signal
import struct
import sys
import time
import unittest
from pathlib import Path
from urllib.parse import quote

from harness.full import some_of
from harness.web import Handler, LocalSite
from harness.worker import processes_below, read
from support import Browser as BrowserProcess
from support import (
    DEMO,
    SITE,
    BrowserTest,
    HookTest,
    Server,
    descendants_of,
    needs_chromium,
    processes_of,
    refused_url,
    warc_records,
)

sys.path.append(str(SITE.parent))
from pages import BODIES  # noqa: E402


def png_size(data):
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data[-8:-4] == b"IEND", "not a whole PNG"
    return struct.unpack(">II", data[16:24])


class LoginProxy(Handler):
    """An HTTP proxy that demands a login."""

    expected = "Basic " + base64.b64encode(b"me:s@cret").decode()

    def do_GET(self):
        self.server.logins.append(self.headers.get("Proxy-Authorization"))
        if self.server.logins[-1] != self.expected:
            self.send_response(407)
            self.send_header("Proxy-Authenticate", 'Basic realm="here"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = b"<!doctype html><title>By proxy</title><p>You came by way of me."
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@needs_chromium
class Proxied(HookTest):
    def test_the_login_of_a_proxy_stands_in_no_command_line(self):
        proxy = LocalSite(LoginProxy)
        self.addCleanup(proxy.close)
        proxy.server.logins = []
        way = {"http_proxy": proxy.url.replace("//", "//me:s%40cret@")}
        self.crawl.mkdir()
        browser = BrowserProcess(self.crawl, **way)
        self.addCleanup(browser.stop)
        process = self.load("http://site.example/", **way)
        lines = [
            read(f"/proc/{pid}/cmdline") for pid in [browser.pid, *(pid for pid, _ in processes_below(browser.pid))]
        ]
        self.assertTrue(any(b"--proxy-server" in line for line in lines))
        self.assertFalse([line for line in lines if b"cret" in line])
        self.assert_status(self.run_hook("title", "http://site.example/", **way), "succeeded")
        outcome = self.close_tab(process)
        self.assert_status(outcome, "succeeded")
        self.assertIn(LoginProxy.expected, proxy.server.logins)
        self.assert_requests_without(outcome.directory / "page.warc.gz", b"proxy-authorization")


@needs_chromium
class Browser(BrowserTest):
    def record(self, path, **settings):
        """Loads the page and ends the tab; its outcome."""
        return self.close_tab(self.load(path, **settings))

    def responses(self, outcome):
        """By URL, paths of the site without its address: status line and body."""
        found = {}
        for fields, block in warc_records(outcome.directory / "page.warc.gz"):
            if fields["WARC-Type"] == "response":
                head, _, body = block.partition(b"\r\n\r\n")
                found[fields["WARC-Target-URI"].replace(self.site.url, "/")] = (int(head.split()[1]), body)
        return found

    def test_the_dom_is_what_scripts_made_of_it(self):
        outcome = self.view("dom", "/scripted.html")  # which also calls alert()
        self.assert_status(outcome, "succeeded")
        html = outcome.text("output.html")
        self.assertIn("<title>After</title>", html)
        self.assertIn("made by a script", html)
        self.assertTrue(html.startswith("\ufeff<!DOCTYPE html>"))

    def test_what_elements_show_beside_their_text_is_kept(self):
        blocks = self.view("text", "/states.html").text("blocks.jsonl")
        for shown in ("⊘ Buy", "☑ Tested", "Starts in ~~March~~", "☑ Done"):
            self.assertIn(f'"{shown}"', blocks)
        for hidden in ("secret", "☑ Open"):
            self.assertNotIn(hidden, blocks)
        self.assertIn("sold out", self.view("screenshot", "/states.html").text("look.json"))

    def test_one_load_serves_all_hooks(self):
        process = self.load("/article.html")
        for plugin in ("headers", "favicon", "screenshot", "pdf", "dom", "title", "text", "outlinks"):
            self.assert_status(self.run_hook(plugin, "/article.html"), "succeeded")
        self.assert_status(self.run_hook("wget", "/article.html"), "skipped")
        outcome = self.close_tab(process)
        self.assert_status(outcome, "succeeded")
        requested = [
            f["WARC-Target-URI"]
            for f, _ in warc_records(outcome.directory / "page.warc.gz")
            if f["WARC-Type"] == "request"
        ]
        self.assertEqual(len(requested), len(set(requested)))
        self.assertEqual(sorted(path.name for path in outcome.directory.iterdir()), ["page.json", "page.warc.gz"])

    def test_what_identifies_a_reader_is_sent_and_not_recorded(self):
        jar = self.temporary / "cookies.txt"
        jar.write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\ttaste\toat\n")
        outcome = self.record("/cookies", COOKIES_FILE=str(jar), WARC_OMIT_HEADERS="user-agent, X-Mine")
        self.assertEqual(self.responses(outcome)["/cookies"][0], 200)
        self.assert_requests_without(outcome.directory / "page.warc.gz", b"cookie", b"user-agent")

    def test_the_record_holds_what_the_page_asked_for(self):
        responses = self.responses(self.record("/article.html"))
        for path in ("/article.html", "/style.css", "/photo.jpg", "/image/one.png", "/image/wave.png"):
            self.assertEqual(responses[path][0], 200, path)
            self.assertTrue(responses[path][1], path)
        self.assertTrue(responses["/photo.jpg"][1].startswith(b"\xff\xd8"))

    def test_the_record_holds_redirects_and_errors(self):
        responses = self.responses(self.record("/redirect"))
        self.assertEqual([responses[p][0] for p in ("/redirect", "/redirect/second", "/article.html")], [301, 302, 200])
        outcome = self.record("/missing")
        self.assert_failed(outcome, "HTTP 404")
        self.assertEqual(self.responses(outcome)["/missing"][0], 404)

    def test_the_record_keeps_the_bytes_of_the_page(self):
        for path, codec in (("/cp1251.html", "cp1251"), ("/shift-jis.html", "cp932"), ("/utf16.html", "utf-16")):
            with self.subTest(path):
                self.responses(self.record(path))[path][1].decode(codec)
        body = self.responses(self.record("/gzip"))["/gzip"][1]
        self.assertIn(b"<title>Compressed</title>", body)

    def test_the_record_keeps_each_document_of_a_chain(self):
        responses = self.responses(self.record("/led-by-script"))
        self.assertIn(b"<title>Stub</title>", responses["/led-by-script"][1])
        self.assertIn("/article.html", responses)

    def test_a_type_that_is_none_is_what_the_browser_takes_it_for(self):
        for kind in ("html", "unknown/unknown", "*/*", "application/unknown"):
            with self.subTest(kind):
                path = f"/body?type={quote(kind)}&charset=html"
                process = self.load(path)
                self.assertEqual(self.run_hook("title", path).output, "Untyped")
                self.assert_status(self.close_tab(process), "succeeded")
                (told,) = [r for r in process.outcome.records if r["type"] == "Response"]
                self.assertEqual(told["mime"], "text/html")

    def test_sections_of_xhtml_are_read(self):
        self.assertIn("5 < 6 in a section", self.view("text", "/strict.xhtml").text("content.txt"))

    def test_plain_text_is_read_from_its_bytes(self):
        for kind in ("text/plain", "application/json", "text/x-log"):
            with self.subTest(kind):
                path = f"/body?type={kind}&charset=unsaid"
                process = self.load(path)
                self.run_hook("dom", path)
                self.assertIn("Größe, чайка, 灯台", self.run_hook("text", path).text("content.txt"))
                self.close_tab(process)

    def test_the_record_counts_what_it_lacks(self):
        outcome = self.record("/lacking.html")
        self.assert_status(outcome, "succeeded")
        (told,) = [record for record in outcome.records if record["type"] == "Resources"]
        # Chromium tells either of the end of the connection or of a body that is too short.
        reasons = {re.sub("disconnect", "unspecified", why): count for why, count in told["missing"].items()}
        self.assertEqual(reasons, {"cut (unspecified)": 1, "net::ERR_NAME_NOT_RESOLVED": 1})
        listed = {one["url"] for one in outcome.json("page.json")["missing"]}
        self.assertEqual(listed, {self.url("/wrong-length"), "http://no-such-host.invalid/a.png"})
        for path in ("/report.pdf?in=embed", "/report.pdf"):
            self.assertTrue(self.responses(outcome)[path][1].startswith(b"%PDF-"), path)
        (told,) = [record for record in self.record("/article.html").records if record["type"] == "Resources"]
        self.assertEqual(told["missing"], {})

    def test_the_record_keeps_the_bytes_of_headers(self):
        outcome = self.record("/raw-location")
        ((_, block),) = [
            (fields, block)
            for fields, block in warc_records(outcome.directory / "page.warc.gz")
            if fields["WARC-Type"] == "response" and fields["WARC-Target-URI"].endswith("/raw-location")
        ]
        self.assertIn("\r\nLocation: /größe/ÀÁÍ-€?n=ü\r\n".encode(), block)
        self.assertIn(b"\r\nX-Latin: \xe9t\xe9\r\n", block)

    def test_the_record_keeps_what_had_come_of_a_broken_page(self):
        for path, kept in (("/broken-off", b"It was a dark and"), ("/wrong-length", b"The harbour at low water")):
            with self.subTest(path):
                outcome = self.record(path)
                self.assert_failed(outcome, "kept what there was")
                ((fields, block),) = [
                    (fields, block)
                    for fields, block in warc_records(outcome.directory / "page.warc.gz")
                    if fields["WARC-Type"] == "response" and fields["WARC-Target-URI"].endswith(path)
                ]  # beside an icon, perhaps
                self.assertEqual(fields["WARC-Truncated"], "disconnect")
                self.assertIn(kept, block)

    def test_the_page_knows_where_redirects_led(self):
        outcome = self.view("dom", "/redirect")
        self.assertEqual(outcome.json("page.json")["url"], self.url("/article.html"))
        told = [r for r in outcome.records if r["type"] == "Redirect"]
        steps = (("/redirect", "/redirect/second", 301), ("/redirect/second", "/article.html", 302))
        self.assertEqual(
            told,
            [
                {"type": "Redirect", "url": self.url(a), "location": self.url(b), "status": status}
                for a, b, status in steps
            ],
        )
        self.assertEqual([r for r in self.recorded.records if r["type"] == "Redirect"], told)

    def test_a_foreign_encoding_becomes_utf8(self):
        self.assertIn("Привет, корабли!", self.view("dom", "/cp1251.html").text("output.html"))
        self.assertIn("海は静かです。", self.view("dom", "/shift-jis.html").text("output.html"))

    def test_the_screenshot_shows_the_whole_page(self):
        outcome = self.view("screenshot", "/links500", RESOLUTION="800,600")
        self.assert_status(outcome, "succeeded")
        width, height = png_size(outcome.file("screenshot.png"))
        self.assertEqual(width, 800)
        self.assertGreater(height, 5000)
        small = outcome.file("thumbnail.jpg")
        frame = small.index(b"\xff\xc0")  # start of frame: length, precision, height, width
        self.assertEqual(struct.unpack(">HH", small[frame + 5 : frame + 9]), (300, 480))
        self.assertLess(len(small), 65536)

    def test_a_tall_page_is_cut(self):
        outcome = self.view("screenshot", "/links500", SCREENSHOT_MAX_HEIGHT="1000", RESOLUTION="640,480")
        self.assertEqual(png_size(outcome.file("screenshot.png")), (640, 1000))

    def test_other_kinds_of_picture(self):
        for kind, name, start in (("jpeg", "screenshot.jpg", b"\xff\xd8\xff"), ("webp", "screenshot.webp", b"RIFF")):
            self.assertTrue(
                self.view("screenshot", "/article.html", SCREENSHOT_FORMAT=kind).file(name).startswith(start)
            )

    def test_the_pdf_is_whole(self):
        data = self.view("pdf", "/article.html").file("output.pdf")
        self.assertTrue(data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF"))
        self.assertGreater(len(data), 5000)

    def test_pictures_that_wait_to_be_seen_are_loaded(self):
        outcome = self.record("/lazy.html")
        self.assertIn("/image/lazy.png", self.responses(outcome))
        self.assertNotIn("/image/lazy.png", self.responses(self.record("/lazy.html", BROWSER_SCROLL="false")))

    def test_a_page_that_scrolls_smoothly_is_scrolled_at_once(self):
        outcome = self.record("/smooth")
        self.assert_status(outcome, "succeeded")
        self.assertIn("/photo.jpg", self.responses(outcome))

    def test_error_pages_are_failures_and_leave_nothing(self):
        for plugin in ("dom", "screenshot", "pdf"):
            outcome = self.view(plugin, "/missing")
            self.assert_failed(outcome, "HTTP 404")
            self.assertEqual(list(outcome.directory.iterdir()), [])
        self.assert_failed(self.view("dom", "/loop"), "ERR_TOO_MANY_REDIRECTS")
        self.assert_failed(self.view("screenshot", "http://no-such-host.invalid/"), "no-such-host.invalid")

    def test_the_error_page_of_the_browser_is_never_the_page(self):
        """The page is there; where it leads on to is not."""
        refused = refused_url(self)
        for plugin, how, to, reason in (
            ("dom", "script", refused, "ERR_CONNECTION_REFUSED"),
            ("screenshot", "script", refused, "ERR_CONNECTION_REFUSED"),
            ("pdf", "refresh", refused, "ERR_CONNECTION_REFUSED"),
            ("screenshot", "timer", refused, "ERR_CONNECTION_REFUSED"),
            ("dom", "script", "http://no-such-host.invalid/", "ERR_NAME_NOT_RESOLVED"),
            ("dom", "script", self.url("/loop"), "ERR_TOO_MANY_REDIRECTS"),
        ):
            with self.subTest(f"{plugin} {how} {to}"):
                outcome = self.view(plugin, f"/lead?how={how}&to={quote(to, safe='')}")
                self.assert_status(outcome, "failed")
                # Where Chromium only says that the navigation was aborted, its page names the error, also in words.
                why = rf"net::({reason}|DNS_PROBE_\w+)"
                self.assertRegex(outcome.result["error"], rf"the page led to {re.escape(to)}\S*: {why}")
                self.assertEqual(list(outcome.directory.iterdir()), [])

    def test_a_page_that_nobody_can_have(self):
        for url in (refused_url(self), "http://no-such-host.invalid/", self.url("/loop")):
            outcome = self.view("dom", url)
            self.assert_status(outcome, "failed")
            self.assertEqual(
                [r["type"] for r in outcome.records if r["type"] != "Redirect"], ["Unreachable", "ArchiveResult"]
            )

    def test_the_answer_is_told(self):
        for path, status in (("/article.html", 200), ("/missing", 404)):
            answer = {"type": "Response", "url": self.url(path), "status": status, "mime": "text/html"}
            self.assertIn(answer, self.view("dom", path).records)
            self.assertIn(answer, self.recorded.records)

    def test_a_page_that_leads_to_another_page_is_that_page(self):
        outcome = self.view("dom", "/lead?how=script&to=/article.html")
        self.assert_status(outcome, "succeeded")
        self.assertNotIn("The real content", outcome.text("output.html"))
        self.assertEqual(outcome.json("page.json")["url"], self.url("/article.html"))

    def test_a_chain_says_how_each_document_led_on(self):
        for how in ("script", "refresh"):
            with self.subTest(how):
                path = f"/lead?how={how}&to=/redirect"
                chain = self.record(path).json("page.json")["redirects"]
                self.assertEqual(
                    [(step["url"].replace(self.site.url, "/"), step["how"], step["status"]) for step in chain],
                    [(path, how, 200), ("/redirect", "http", 301), ("/redirect/second", "http", 302)],
                )

    def test_a_page_that_leads_to_what_is_not_shown_stays(self):
        for to in ("/no-content", "/body?of=table&type=text/csv"):
            with self.subTest(to):
                path = f"/lead?how=timer&to={quote(to, safe='')}"
                outcome = self.view("dom", path)
                self.assert_status(outcome, "succeeded")
                self.assertIn("The real content", outcome.text("output.html"))
                about = self.recorded.json("page.json")
                self.assertEqual((about["url"], about["status"], about["redirects"]), (self.url(path), 200, []))
                if "of=" in to:
                    self.assertEqual(self.responses(self.recorded)[to], (200, BODIES["table"]))

    def test_a_document_that_leads_on_while_it_arrives_is_marked(self):
        path = "/lead-early?to=/article.html"
        outcome = self.record(path)
        self.assert_status(outcome, "succeeded")
        ((fields, block),) = [
            (fields, block)
            for fields, block in warc_records(outcome.directory / "page.warc.gz")
            if fields["WARC-Type"] == "response" and fields["WARC-Target-URI"] == self.url(path)
        ]
        self.assertEqual(fields["WARC-Truncated"], "disconnect")
        kept = block.partition(b"\r\n\r\n")[2]  # nothing, if its script was quicker than our question
        self.assertTrue(not kept or b"location" in kept, kept)

    def test_wget_is_left_out_only_if_the_record_is_whole(self):
        for path, status in (
            ("/article.html", "skipped"),
            ("/gzip", "skipped"),
            ("/report.pdf", "skipped"),
            ("/wrong-length", "failed"),
            ("/cut-gzip", "failed"),
        ):
            with self.subTest(path):
                self.record(path)
                self.assert_status(self.run_hook("wget", path), status)

    def test_no_content_is_said(self):
        outcome = self.record("/no-content")
        self.assert_failed(outcome, "no content")
        for fields, _ in warc_records(outcome.directory / "page.warc.gz"):
            self.assertNotIn("WARC-Truncated", fields)
        self.assert_failed(self.run_hook("wget", "/no-content", WGET_ALWAYS="true"), "no content")
        self.assert_status(self.run_hook("wget", "/no-content"), "skipped")

    def test_a_site_that_asks_to_slow_down(self):
        limit = {"type": "RateLimit", "host": "127.0.0.1", "status": 503, "retry_after": "7"}
        self.assertIn(limit, self.view("dom", "/status/503").records)

    def test_other_things_than_pages_are_recorded_and_not_shown(self):
        for path, start in (
            ("/report.pdf", b"%PDF-"),
            ("/photo.jpg", b"\xff\xd8"),
            ("/large.bin?mb=3", bytes(range(256))),
        ):
            with self.subTest(path):
                for plugin in ("dom", "screenshot", "pdf"):
                    outcome = self.view(plugin, path)
                    self.assert_status(outcome, "noresults")
                    self.assertIn("not a page for a browser", outcome.output)
                    self.assert_status(self.recorded, "succeeded")
                status, body = self.responses(self.recorded)[path]
                self.assertEqual(status, 200)
                self.assertTrue(body.startswith(start))
                self.assertEqual(self.recorded.output, "file" + path.partition("?")[0])
                self.assertEqual(self.recorded.file(self.recorded.output), body)
        self.assertEqual(len(body), 3 << 20)

    def test_no_body_is_lost_whatever_the_browser_makes_of_its_type(self):
        types = ("", "text/plain", "text/csv", "text/calendar", "application/rtf")
        for number, (of, kind) in enumerate(itertools.product(BODIES, types)):
            path = f"/body?of={of}&type={kind}" + ("&chunked=1" if number % 2 else "")
            with self.subTest(path):
                outcome = self.record(path)
                self.assert_status(outcome, "succeeded")
                self.assertEqual(self.responses(outcome)[path], (200, BODIES[of]))

    def test_what_is_no_page_is_read_as_a_file(self):
        self.assertEqual(self.view("title", "/download").output, "Download")
        self.assertEqual(self.recorded.output, "file/download")
        self.assertEqual(self.paths(self.view("outlinks", "/list.jsonl")), ["/leaf/1", "/leaf/2"])

    def test_the_name_of_a_file_is_harmless(self):
        for path, name in (
            ("/files/..%2f..%2f$(id);x.pdf", "%2f..%2f__id__x.pdf"),
            ("/files/.bashrc", "bashrc"),
            ("/files/?of=the-directory.pdf", "file"),
            ("/files/" + "long" * 100 + ".pdf", "long" * 24 + ".pdf"),
            ("/files/page.warc.gz", "page.warc.gz"),
        ):
            with self.subTest(path):
                outcome = self.record(path)
                self.assert_status(outcome, "succeeded")
                self.assertEqual(outcome.output, "file/" + name)
                self.assertTrue(outcome.file(outcome.output).startswith(b"%PDF-"))
                self.assertEqual(len(self.responses(outcome)), 1)  # the record is still one

    def test_a_record_beyond_the_limit_is_cut(self):
        outcome = self.record("/large.bin", BROWSER_MAX_SIZE="2m")
        self.assert_failed(outcome, "larger than BROWSER_MAX_SIZE")
        ((fields, _),) = [
            r for r in warc_records(outcome.directory / "page.warc.gz") if r[0]["WARC-Type"] == "response"
        ]
        self.assertEqual(fields["WARC-Truncated"], "length")

    def test_an_endless_page_ends_before_the_timeout_and_is_kept(self):
        outcome = self.view("dom", "/endless", TIMEOUT="15")
        self.assert_failed(outcome, "did not arrive whole")
        self.assertIn("<title>Endless</title>", outcome.text("output.html"))
        self.assert_failed(self.recorded, "did not arrive whole")
        self.assertIn(b"<title>Endless</title>", self.responses(self.recorded)["/endless"][1])

    def test_a_page_that_hangs_on_an_image_is_taken_as_it_is(self):
        outcome = self.view("screenshot", "/slow-image.html", TIMEOUT="15")
        self.assert_status(outcome, "succeeded")
        self.assertIs(outcome.result["output_json"]["finished"], False)

    def test_a_page_that_hangs_on_a_script_is_taken_as_it_is(self):
        outcome = self.view("dom", "/slow-script.html", TIMEOUT="15")
        self.assert_status(outcome, "succeeded")
        self.assert_status(self.recorded, "succeeded")
        self.assertEqual(self.recorded.result["output_json"]["cut"], ["load"])

    def test_pages_that_break_off_are_failures(self):
        self.assert_failed(self.view("dom", "/broken-off"), "broke off")
        self.assert_failed(self.recorded, "broke off")

    def test_a_script_without_end_does_not_hold_us(self):
        for path in some_of(("/busy.html", "/busy-late.html"), 2):
            with self.subTest(path):
                self.assert_failed(self.view("dom", path, TIMEOUT="15"), "did not answer in time")
                self.assert_status(self.recorded, "succeeded")  # the record is whole
                self.assertEqual(self.recorded.result["output_json"]["cut"][-1], "script")
                self.assertIn(b"Before the script", self.responses(self.recorded)[path][1])

    def test_a_page_that_opens_windows_and_asks_questions(self):
        outcome = self.view("dom", "/popups.html")
        self.assert_status(outcome, "succeeded")
        self.assertIn("<p>Still here</p>", outcome.text("output.html"))

    def test_a_synchronous_request_of_the_page(self):
        outcome = self.view("dom", "/synchronous.html")
        self.assertIn("<p>200</p>", outcome.text("output.html"))

    def test_what_scripts_fetch_is_in_the_record(self):
        self.assertIn("/list.txt", self.responses(self.record("/synchronous.html")))

    def test_frames_are_in_the_record(self):
        responses = self.responses(self.record("/frames.html"))
        self.assertEqual([responses[path][0] for path in ("/frames.html", "/leaf/1", "/leaf/2")], [200, 200, 200])

    def test_a_hostile_page(self):
        self.assert_status(self.view("dom", "/hostile.html"), "succeeded")

    def test_two_pages_at_once_do_not_meet(self):
        """Cookies of one are not those of the other."""
        first = self.load("/cookies")
        other = self.snapshot.parent / "other"
        self.snapshot, kept = other, self.snapshot
        second = self.load("/scripted.html")
        self.assert_status(self.close_tab(second), "succeeded")
        self.snapshot = kept
        self.assert_status(self.close_tab(first), "succeeded")


@needs_chromium
class Ends(BrowserTest):
    """What happens when something ends before its time. Nothing stays behind."""

    def renderers(self):
        return [line for line in descendants_of(self.browser.pid) if b"--type=renderer" in line]

    def until(self, done, what):
        deadline = time.monotonic() + 30
        while not done():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def test_a_browser_that_is_killed_is_replaced(self):
        process = self.load("/article.html")
        for pid in Path(f"/proc/{self.browser.pid}/task/{self.browser.pid}/children").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        process.wait(30)
        self.assert_status(self.view("dom", "/article.html"), "succeeded")

    def test_a_hook_that_is_killed_leaves_no_tab(self):
        process = self.load("/slow-image.html", TIMEOUT="15")
        self.until(lambda: len(self.renderers()) >= 1, "there is no tab")
        process.kill()
        process.wait(10)
        self.until(lambda: processes_of(self.snapshot) == [], "the hook is still there")
        self.assert_status(self.view("dom", "/article.html"), "succeeded")

    def test_told_to_stop_while_it_loads_it_says_nothing(self):
        process = self.start("browser", self.url("/slow?seconds=60"))
        self.until(lambda: (self.snapshot / "browser" / "page.warc.gz").exists(), "it did not get going")
        process.send_signal(signal.SIGTERM)
        outcome = self.finish("browser", process, limit=20)
        self.assertEqual((outcome.code, outcome.records), (143, []))

    def test_the_crawl_hook_takes_its_browser_with_it(self):
        self.load("/article.html")
        self.browser.stop()
        self.until(lambda: not [p for p in processes_of(self.crawl) if b"chrom" in p], "Chromium is still there")
        self.assertEqual([path.name for path in (self.crawl / "browser").iterdir()], [])
        type(self).browser = type(self.browser)(self.crawl)
        self.addClassCleanup(type(self).browser.stop)


@needs_chromium
class DemoSite(BrowserTest):
    def test_the_demo_site_can_be_archived(self):
        demo = Server(DEMO)
        self.addCleanup(demo.stop)
        process = self.load(demo.url)
        for plugin in ("headers", "screenshot", "pdf", "dom", "title", "text", "outlinks", "hashes"):
            outcome = self.run_hook(plugin, demo.url)
            self.assert_status(outcome, "succeeded")
            if plugin == "title":
                self.assertEqual(outcome.output, "Hollow Skerry Light: a keeper's log")
            if plugin == "outlinks":
                self.assertEqual(len(self.links(outcome)), 5)
        self.assert_status(self.close_tab(process), "succeeded")


if __name__ == "__main__":
    unittest.main()
