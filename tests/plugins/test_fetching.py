"""headers, wget and favicon against good and bad pages."""

import gzip
import json
import subprocess
import unittest
from pathlib import Path

from harness.web import Handler, LocalSite
from support import HookTest, hook_file, needs_wget, refused_url


class Headers(HookTest):
    def test_a_page(self):
        outcome = self.run_hook("headers", "/article.html", USER_AGENT="tester/1")
        self.assert_status(outcome, "succeeded")
        self.assertEqual(outcome.output, "HTTP 200 OK")
        about = outcome.json("headers.json")
        self.assertEqual(about["status"], 200)
        self.assertEqual(about["headers"]["content-type"], "text/html; charset=utf-8")
        self.assertEqual(about["redirects"], [])

    def test_redirects_are_recorded_in_order(self):
        about = self.run_hook("headers", "/redirect").json("headers.json")
        self.assertEqual([hop["status"] for hop in about["redirects"]], [301, 302])
        self.assertEqual(about["final_url"], self.url("/article.html"))

    def test_redirects_are_told(self):
        """So that robots.txt of where they lead can be asked."""
        told = [
            {"type": "Redirect", "url": self.url(a), "location": self.url(b), "status": status}
            for a, b, status in (("/redirect", "/redirect/second", 301), ("/redirect/second", "/article.html", 302))
        ]
        for plugin in ("headers", "wget"):
            with self.subTest(plugin):
                outcome = self.run_hook(plugin, "/redirect")
                self.assertEqual([r for r in outcome.records if r["type"] == "Redirect"], told)
        self.assertEqual([r for r in self.run_hook("wget", "/article.html").records if r["type"] == "Redirect"], [])

    def test_a_redirect_loop_ends(self):
        outcome = self.run_hook("headers", "/loop")
        self.assert_failed(outcome, "more than 10 redirects")
        self.assertIn("error", outcome.json("headers.json"))

    def test_a_redirect_to_a_file_is_refused(self):
        self.assert_failed(self.run_hook("headers", "/redirect/file"), "not http or https")

    def test_a_location_that_is_not_ascii(self):
        about = self.run_hook("headers", "/hostile-redirect").json("headers.json")
        self.assertEqual(about["final_url"], self.url("/t%C3%A4ter%20ort"))

    def test_a_server_that_refuses_head_is_asked_with_get(self):
        about = self.run_hook("headers", "/no-head").json("headers.json")
        self.assertEqual((about["status"], about["method"]), (200, "GET"))

    def test_cookies_are_kept_across_redirects(self):
        self.assertEqual(self.run_hook("headers", "/cookies").json("headers.json")["status"], 200)

    def test_an_error_status_is_told_as_it_is(self):
        outcome = self.run_hook("headers", "/missing")
        self.assertEqual(outcome.output, "HTTP 404 Not Found")
        self.assertEqual(outcome.json("headers.json")["status"], 404)

    def test_a_site_that_asks_to_slow_down(self):
        for status in (429, 503):
            outcome = self.run_hook("headers", f"/status/{status}?retry_after=11")
            limit = {"type": "RateLimit", "host": "127.0.0.1", "status": status, "retry_after": "11"}
            self.assertIn(limit, outcome.records)

    def test_a_page_that_nobody_can_have(self):
        for plugin in ("headers", "wget"):
            for url, reason in ((refused_url(self), "refused"), ("http://no-such-host.invalid/", "does not resolve")):
                with self.subTest(f"{plugin} {url}"):
                    outcome = self.run_hook(plugin, url)
                    self.assert_failed(outcome, reason)
                    (told,) = [record["reason"] for record in outcome.records if record["type"] == "Unreachable"]
                    self.assertIn(reason, told)

    def test_a_page_that_others_may_get(self):
        """A loop may need cookies, an error is an answer, a broken page was there."""
        for plugin, path in (("headers", "/loop"), ("wget", "/loop"), ("wget", "/missing"), ("wget", "/broken-off")):
            with self.subTest(f"{plugin} {path}"):
                outcome = self.run_hook(plugin, path)
                self.assert_status(outcome, "failed")
                self.assertNotIn("Unreachable", [record["type"] for record in outcome.records])

    def test_the_answer_is_told(self):
        for plugin, path, status, mime in (
            ("title", "/article.html", 200, "text/html"),  # fetches the page while no other plugin has it
            ("headers", "/article.html", 200, "text/html"),
            ("headers", "/missing", 404, "text/html"),
            ("wget", "/article.html", 200, "text/html"),
            ("wget", "/report.pdf", 200, "application/pdf"),
            ("wget", "/missing", 404, "text/html"),
        ):
            with self.subTest(f"{plugin} {path}"):
                told = [record for record in self.run_hook(plugin, path).records if record["type"] == "Response"]
                self.assertEqual(told, [{"type": "Response", "url": self.url(path), "status": status, "mime": mime}])

    def test_headers_that_drip_end_at_the_timeout(self):
        self.assert_failed(
            self.run_hook("headers", "/slow-headers?seconds=100", HEADERS_TIMEOUT="5"), "timed out after 5 s"
        )


@needs_wget
class Wget(HookTest):
    def test_a_page_with_all_it_shows(self):
        outcome = self.run_hook("wget", "/article.html")
        self.assert_status(outcome, "succeeded")
        self.assertTrue(outcome.output.endswith("/article.html"))
        directory = outcome.directory / outcome.output.split("/")[0]
        found = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
        self.assertLessEqual({"article.html", "style.css", "photo.jpg", "image/one.png", "image/wave.png"}, found)
        self.assertIn('href="style.css"', (directory / "article.html").read_text())  # made local
        self.assertIn('href="/style.css"', (directory / "article.html.orig").read_text())
        with gzip.open(outcome.directory / "warc" / "page.warc.gz") as warc:
            text = warc.read()
        self.assertIn(f"WARC-Target-URI: <{self.url('/article.html')}>".encode(), text)
        self.assertIn(b"WARC-Type: response", text)

    def test_what_identifies_a_reader_is_sent_and_not_recorded(self):
        jar = self.temporary / "cookies.txt"
        jar.write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\ttaste\toat\n")
        outcome = self.run_hook("wget", "/cookies", COOKIES_FILE=str(jar), WARC_OMIT_HEADERS="user-agent")
        self.assert_status(outcome, "succeeded")
        self.assertEqual([path.name for path in (outcome.directory / "warc").iterdir()], ["page.warc.gz"])
        self.assert_requests_without(outcome.directory / "warc" / "page.warc.gz", b"cookie", b"user-agent")

    def test_the_page_is_described_for_others(self):
        about = self.run_hook("wget", "/redirect").json("page.json")
        self.assertEqual(about["url"], self.url("/article.html"))
        self.assertEqual((about["status"], about["complete"]), (200, True))

    def test_what_the_site_answered_is_not_asked_again(self):
        self.run_hook("wget", "/redirect")
        outcome = self.run_hook("headers", "/redirect")
        self.assert_status(outcome, "succeeded")
        about = outcome.json("headers.json")
        self.assertEqual((about["status"], about["reason"], about["method"]), (200, "OK", "GET"))  # its own is HEAD
        self.assertEqual(about["final_url"], self.url("/article.html"))
        self.assertEqual(about["redirects"][-1]["location"], self.url("/article.html"))
        self.assertTrue(about["headers"]["content-type"].startswith("text/html"))

    def test_it_is_not_led_inside(self):
        isolated = [
            "unshare",
            "--map-root-user",
            "--net",
            "/usr/bin/python3",
            str(Path(__file__).parent / "led_inside.py"),
        ]
        if subprocess.run([*isolated[:3], "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespaces for users")
        for plugin in ("wget", "headers"):
            with self.subTest(plugin):
                done = subprocess.run(
                    [*isolated, hook_file(plugin)],
                    env=self.environment({}),
                    cwd=self.temporary,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertIn("refused: 93.184.216.34 points to the private address 127.0.0.1", done.stdout)
                self.assertNotIn("/inside", done.stderr)

    def test_an_http_error_of_the_page_is_a_failure(self):
        self.assert_failed(self.run_hook("wget", "/missing"), "HTTP 404")
        self.assert_failed(self.run_hook("wget", "/error"), "HTTP 500")

    def test_a_site_that_asks_to_slow_down(self):
        outcome = self.run_hook("wget", "/status/429")
        self.assertIn({"type": "RateLimit", "host": "127.0.0.1", "status": 429, "retry_after": "7"}, outcome.records)
        self.assert_failed(outcome, "HTTP 429")

    def test_a_redirect_loop_ends(self):
        self.assert_failed(self.run_hook("wget", "/loop"), "too many redirects")

    def test_a_redirect_to_a_file_is_refused(self):
        self.assert_failed(self.run_hook("wget", "/redirect/file"), "not http or https")

    def test_a_large_file_arrives_whole(self):
        outcome = self.run_hook("wget", "/large.bin", WGET_WARC="false")
        self.assert_status(outcome, "succeeded")
        self.assertEqual((outcome.directory / outcome.output).stat().st_size, 100 << 20)

    def test_a_file_beyond_the_limit_is_cut(self):
        outcome = self.run_hook("wget", "/large.bin?mb=8", WGET_MAX_SIZE="2m")
        self.assert_failed(outcome, "larger than WGET_MAX_SIZE")
        sizes = [path.stat().st_size for path in outcome.directory.rglob("*") if path.is_file()]
        self.assertLessEqual(max(sizes), 2 << 20)
        self.assertGreater(max(sizes), (2 << 20) - (1 << 16))  # wget writes in pieces

    def test_an_endless_answer_ends_at_the_timeout_and_is_kept(self):
        outcome = self.run_hook("wget", "/endless", WGET_TIMEOUT="5")
        self.assert_failed(outcome, "timed out after 5 s; kept")
        about = outcome.json("page.json")
        self.assertIs(about["complete"], False)
        self.assertIn(b"<title>Endless</title>", outcome.file(about["path"]))

    def test_a_page_that_hangs_on_an_image_is_kept(self):
        outcome = self.run_hook("wget", "/slow-image.html", WGET_TIMEOUT="5")
        self.assert_failed(outcome, "the page is whole")
        self.assertIs(outcome.json("page.json")["complete"], True)

    def test_pages_that_break_off_are_failures(self):
        for path in ("/broken-off", "/wrong-length", "/cut-gzip"):
            self.assert_failed(self.run_hook("wget", path), "the page broke off")

    def test_other_things_than_html(self):
        outcome = self.run_hook("wget", "/report.pdf")
        self.assert_status(outcome, "succeeded")
        self.assertTrue(outcome.file(outcome.output).startswith(b"%PDF-"))

    def test_a_host_name_that_does_not_resolve(self):
        self.assert_failed(self.run_hook("wget", "http://no-such-host.invalid/"), "does not resolve")

    def test_a_url_that_looks_like_an_option_is_no_option(self):
        outcome = self.run_hook("wget", "/article.html?--output-document=/tmp/x;$(touch%20x)`touch%20y`")
        self.assert_status(outcome, "succeeded")

    def test_the_user_agent_is_sent(self):
        outcome = self.run_hook("wget", "/echo-headers", USER_AGENT="tester/1 (of plugins)")
        self.assertEqual(json.loads(outcome.file(outcome.output))["User-Agent"], "tester/1 (of plugins)")


class Favicon(HookTest):
    def test_the_icon_that_the_page_links(self):
        outcome = self.run_hook("favicon", "/article.html")
        self.assert_status(outcome, "succeeded")
        self.assertEqual(outcome.file("favicon.ico")[:4], b"\0\0\1\0")

    def test_an_icon_in_the_page_itself(self):
        outcome = self.run_hook("favicon", "/data-icon.html")
        self.assert_status(outcome, "succeeded")
        self.assertEqual(outcome.file("favicon.png")[:4], b"\x89PNG")

    def test_the_usual_place_when_the_page_is_no_html(self):
        self.assert_status(self.run_hook("favicon", "/report.pdf"), "succeeded")

    def test_the_pages_of_a_crawl_fetch_an_icon_once(self):
        icon, asked = b"\0\0\1\0\1\0\1\1\0\0\1\0\x18\0\x30\0\0\0\x16\0\0\0" + bytes(48), []

        class Site(Handler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "image/x-icon" if self.path == "/favicon.ico" else "text/plain")
                self.end_headers()
                self.wfile.write(icon if self.path == "/favicon.ico" else b"text")

        site = LocalSite(Site)
        self.addCleanup(site.close)
        for page in ("one", "two"):
            outcome = self.run_hook("favicon", f"{site.url}/{page}")
            self.assert_status(outcome, "succeeded")
            self.assertEqual(outcome.file("favicon.ico"), icon)
        self.assertEqual(asked.count("/favicon.ico"), 1)


if __name__ == "__main__":
    unittest.main()
