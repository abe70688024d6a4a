"""The parts that hostile pages reach first."""

import tempfile
import unittest

import support  # noqa: F401  puts the library on the path

import charset
import fetch
import html_scan
import links
import readable
import wget_log
from hook import Failed


def tags(text):
    return [(name, attributes) for kind, name, attributes in html_scan.tokens(text) if kind == "start"]


class HtmlScan(unittest.TestCase):
    def test_attributes_in_every_style(self):
        self.assertEqual(
            tags("<A HREF=a b='&lt;' c=\"x>y\" d e = f g=1/><br/>"),
            [("a", {"href": "a", "b": "<", "c": "x>y", "d": "", "e": "f", "g": "1/"}), ("br", {})],
        )

    def test_the_first_of_two_attributes_counts(self):
        self.assertEqual(tags("<a href=1 href=2>"), [("a", {"href": "1"})])

    def test_scripts_and_comments_hold_no_tags(self):
        self.assertEqual([name for name, _ in tags("<!-- <a> --><script>'<b>'</script><!doctype x><i>")], ["script", "i"])
        self.assertEqual([name for name, _ in tags("<!--> <a> <!-- never closed <b>")], ["a"])

    def test_text_around_odd_brackets(self):
        text = "".join(name for kind, name, _ in html_scan.tokens("1 < 2 &amp; 3 </> 4 <5"))
        self.assertEqual(text, "1 < 2 & 3  4 <5")

    def test_text_that_ends_inside_anything(self):
        for text in ("<", "<a", "<a ", "<a href", "<a href=", "<a href='x", "<!", "<!-", "<!--", "</", "</a", "<title>x", "&"):
            list(html_scan.tokens(text))

    def test_time_grows_with_the_size_and_no_faster(self):
        for piece in ("<!--", "<a ", "<a b='", "<a/", "</", "<title>", "<a b=\"", "<div>", "& ", "<a b =  ", "<![CDATA["):
            text = piece * (1_000_000 // len(piece))
            # A scan in quadratic time would not end within the time limit of the whole suite.
            self.assertLessEqual(sum(1 for _ in html_scan.tokens(text)), len(text))

    def test_readable_text_of_deep_nesting(self):
        deep = "<div>" * 100_000 + "<p>bottom" + "</span></nav></div>" * 100_000
        self.assertEqual([block.text for block in readable.blocks(deep)], ["bottom"])


class Charset(unittest.TestCase):
    def test_what_decides(self):
        self.assertEqual(charset.decode("é".encode(), "text/html; charset=latin1"), "Ã©")
        self.assertEqual(charset.decode(b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=latin1"), "é")
        self.assertEqual(charset.decode(b"<meta charset=koi8-r>\xc1"), "<meta charset=koi8-r>а")
        self.assertEqual(charset.decode(b"caf\xe9"), "café")
        self.assertEqual(charset.decode("é".encode()), "é")

    def test_labels_that_are_no_encodings_of_pages(self):
        for label in ("rot13", "base64", "utf-7", "idna", "unicode_escape", "no-such-thing", "", "\udc80", "x" * 10000):
            self.assertEqual(charset.decode(b"a+b\\u0041", f"text/html; charset={label}"), "a+b\\u0041")

    def test_every_byte_decodes_to_something(self):
        for label in ("utf-8", "utf-16", "shift_jis", "big5", "gbk", "euc-kr", "windows-1252", "iso-2022-jp"):
            self.assertTrue(charset.decode(bytes(range(256)) * 4, f"text/html; charset={label}"))


class Links(unittest.TestCase):
    def test_only_http_and_no_fragment(self):
        base = "http://example.org/a/b?c#d"
        for href, url in (
            ("x#y", "http://example.org/a/x"),
            ("//other.example/", "http://other.example/"),
            ("HTTPS://Example.org", "HTTPS://Example.org"),
            ("?", "http://example.org/a/b?c"),
            ("mailto:x@y", None), ("javascript:1", None), ("data:,x", None), ("", None), ("http://", None),
            ("http://[", None), ("x" * 3000, None), ("java\nscript:1", None),
        ):  # fmt: skip
            self.assertEqual(links.absolute(base, href), url, href)

    def test_a_broken_feed_is_read_as_text(self):
        text = "<rss><channel><item><link>http://example.org/1</link></item>"
        found = [link["url"] for link in links.in_feed(text.encode(), text, "http://example.org/")]
        self.assertEqual(found, ["http://example.org/1"])

    def test_entities_that_explode_are_refused(self):
        levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
        bomb = f'<!DOCTYPE r [<!ENTITY e0 "ha">{levels}]><rss><item><title>&e11;</title></item></rss>'
        self.assertEqual(list(links.in_feed(bomb.encode(), bomb, "http://example.org/")), [])

    def test_deep_json_is_refused(self):
        self.assertEqual(list(links.in_json("[" * 100_000, "http://example.org/")), [])


class PrivateAddresses(unittest.TestCase):
    def test_inside_and_outside(self):
        for host in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "192.168.0.1", "0.0.0.0"):
            self.assertTrue(fetch.is_private(host), host)
        for host in ("8.8.8.8", "2606:4700::1111"):
            self.assertFalse(fetch.is_private(host), host)

    def test_a_page_outside_cannot_send_us_inside(self):
        with self.assertRaisesRegex(Failed, "private address 127.0.0.1"):
            fetch.refuse_private("http://8.8.8.8/", "http://127.0.0.1/admin")
        fetch.refuse_private("http://127.0.0.1/", "http://10.0.0.1/")  # a page inside was allowed by the operator
        fetch.refuse_private("http://8.8.8.8/", "http://8.8.4.4/")


class WgetLog(unittest.TestCase):
    def test_a_log_that_ends_anywhere(self):
        log = (
            "--2026-01-02 03:04:05--  http://example.org/\n  HTTP/1.1 302 Found\n  Location: /x\n"
            "Location: /x [following]\n--2026-01-02 03:04:05--  http://example.org/x\n  HTTP/1.1 200 OK\n"
            "  Content-Type: text/html\nSaving to: ‘example.org/index.html’\n\n"
            "2026-01-02 03:04:05 (1 MB/s) - ‘example.org/index.html’ saved [10/10]\n\n"
        )
        for end in range(0, len(log), 7):
            with tempfile.NamedTemporaryFile(suffix=".log") as file:
                file.write(log[:end].encode())
                file.flush()
                wget_log.main_exchange(wget_log.parse(file.name))
        with tempfile.NamedTemporaryFile(suffix=".log") as file:
            file.write(log.encode())
            file.flush()
            main = wget_log.main_exchange(wget_log.parse(file.name))
        self.assertEqual((main.url, main.status, main.complete), ("http://example.org/x", 200, True))
        self.assertEqual(main.saved_to, "example.org/index.html")
