"""Pages that are no pages, never end, or break their browser: one browser for all of them, as in one crawl."""

import gzip
import ssl
import subprocess
import tempfile
from pathlib import Path

from harness.full import some_of
from harness.web import Handler, LocalSite
from support import BrowserTest, needs_chromium, processes_of

# path: status of `browser` and of `dom`, and what the one that did not succeed says.
CASES = {
    "/endless": ("failed", "failed", "did not arrive whole"),
    "/loop": ("failed", "failed", "ERR_TOO_MANY_REDIRECTS"),
    "/missing": ("failed", "failed", "HTTP 404"),
    "/large.bin": ("succeeded", "noresults", "not a page for a browser"),
    "/download": ("succeeded", "noresults", "the server sent a download"),
    "/report.pdf": ("succeeded", "noresults", "not a page for a browser: application/pdf"),
    "/photo.jpg": ("succeeded", "noresults", "not a page for a browser: image/jpeg"),
    "/wrong-charset.html": ("succeeded", "succeeded", ""),
    "/password": ("failed", "failed", "HTTP 401"),
    "/broken-off": ("failed", "failed", "broke off"),
    "/frames.html": ("succeeded", "succeeded", ""),
    "/links/10000": ("succeeded", "succeeded", ""),
    "/slow-image.html": ("succeeded", "succeeded", ""),
    "/popups.html": ("succeeded", "succeeded", ""),
    "/memory.html": ("failed", "failed", "crashed the browser|did not arrive whole|did not answer"),
}
SLOW = {"/endless": "8", "/slow-image.html": "8", "/memory.html": "40"}


def free_memory():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


class SecureServer(LocalSite):
    """One page through TLS, with a self-signed certificate."""

    def __init__(self, directory):
        class Page(Handler):
            def do_GET(self):
                body = b"<!doctype html><title>Secret</title><p>Not for everybody."
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        key, certificate = directory / "key.pem", directory / "certificate.pem"
        request = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=elsewhere.invalid"]
        subprocess.run([*request, "-keyout", key, "-out", certificate], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        super().__init__(Page)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:") + "/"


@needs_chromium
class Awkward(BrowserTest):
    def judge(self, path, recorded, viewed, reason, **settings):
        outcome = self.view("dom", path, **settings)
        self.assert_status(outcome, viewed)
        self.assert_status(self.recorded, recorded)
        for one in (outcome, self.recorded):
            if one.status != "succeeded":
                self.assertRegex(one.result.get("error") or one.output, reason)
        return outcome

    def recorded_text(self):
        return gzip.decompress(self.recorded.file("page.warc.gz"))

    def test_each_ends_with_its_status_and_reason(self):
        for path, (recorded, viewed, reason) in some_of(CASES.items(), 2):
            with self.subTest(path):
                self.judge(path, recorded, viewed, reason, TIMEOUT=SLOW.get(path, "60"))
                if path == "/large.bin":
                    self.assertGreater(len(self.recorded_text()), 100 << 20)
                if path == "/wrong-charset.html":
                    self.assertIn("Привет, корабли!".encode("cp1251"), self.recorded_text())
        with self.subTest("the browser still works"):
            self.judge("/article.html", "succeeded", "succeeded", "")

    def test_all_of_ten_thousand_links_are_found(self):
        process = self.load("/links/10000")
        outcome = self.run_hook("outlinks", "/links/10000")
        self.assert_status(self.close_tab(process), "succeeded")
        self.assertEqual(len(self.links(outcome)), 10000)

    def test_a_self_signed_certificate(self):
        directory = tempfile.TemporaryDirectory(prefix="holdfast-tls-")
        self.addCleanup(directory.cleanup)
        server = SecureServer(Path(directory.name))
        self.addCleanup(server.close)
        self.judge(server.url, "failed", "failed", "ERR_CERT_AUTHORITY_INVALID")
        outcome = self.judge(server.url, "succeeded", "succeeded", "", CHECK_SSL_VALIDITY="false")
        self.assertIn("Not for everybody", outcome.text("output.html"))

    def test_a_page_that_takes_four_gigabytes(self):
        """Its renderer may survive or not. Afterwards the browser works."""
        if free_memory() < 7 << 30:
            self.skipTest("less than 7 GB of memory are free")
        outcome = self.view("dom", "/allocate.html", TIMEOUT="60")
        self.assertIn(outcome.status, ("succeeded", "failed"))
        if outcome.status == "failed":
            self.assertRegex(outcome.result["error"], "crashed the browser|did not arrive whole|did not answer")
        else:
            self.assertRegex(outcome.text("output.html"), r"<p>allocated \d+ MB</p>")
        self.judge("/article.html", "succeeded", "succeeded", "")

    def tearDown(self):
        left = [line for line in processes_of(self.snapshot) if b"holdfast-capture" in line]
        self.assertEqual(left, [])
        super().tearDown()

    @classmethod
    def tearDownClass(cls):
        cls.browser.stop()
        left = [line for line in processes_of(cls.browser.crawl) if b"chrom" in line]
        assert not left, left
        super().tearDownClass()
