"""Shelves on the pages and in the API; and that a link which shares something leads to nothing else: each route and
operation there is, with each kind of link in each place where a credential can stand."""

import base64
import concurrent.futures
import html
import http.client
import io
import itertools
import json
import os
import re
import signal
import subprocess
import urllib.parse
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from harness.wait import until
from harness.web import Handler
from harness.worker import processes, read
from served import Served

SERVE = Path(__file__).resolve().parents[2] / "services/serve"
HOSTILE = "</title><script>alert(1)</script>\u202e" + "W" * 10000
REFUSED = (401, 403, 404)
PUBLIC = {"/healthz", "/readyz", "/style.css", "/live.js", "/persona_view.js", "/manifest.json", "/icon.svg"}
PUBLIC |= {"/favicon.ico", "/sign-in", "/sign-out", "/api/"}  # they show nothing of the collection


class Site(Handler):
    def do_GET(self):
        name = self.path.strip("/")
        title = html.escape(HOSTILE) if name == "hostile" else f"Page {name}"
        self.send_page(f"<title>{title}</title><h1>Page</h1><p>The solar wind of {name}.</p>")


class Shelves(Served):
    SITE = Site
    ENV = {"HOLDFAST_SERVE_GUEST": "none"}

    @classmethod
    def capture(cls):
        for names, tag in (("a", "old"), ("bh", "old"), ("a", "news"), ("c", "news")):
            urls = [f"{cls.web.url}/{'hostile' if name == 'h' else name}" for name in names]
            cls.place.run("add", "--plugins", "wget,title,text", "--tag", tag, *urls)
        cls.token = cls.place.run("token", "add", "tester", "--role", "operator", "--json").records[0]["token"]

    def setUp(self):
        rows = self.rows[::-1]
        self.ids = {}
        for row in rows:
            key = row["url"].rsplit("/", 1)[1][0]
            self.ids[key + ("2" if key in {*self.ids, "c"} else "")] = row["id"]
        self.directory = {row["id"]: row["directory"] for row in rows}
        self.files = ""

    peers = itertools.count(2)

    def ask(self, path, method="GET", body=None, origin=None, headers=()):
        """From an address of its own: wrong tokens make a client wait."""
        url = urllib.parse.urlsplit(origin or self.front)
        peer = next(self.peers)
        connection = http.client.HTTPConnection(
            url.hostname, url.port, timeout=30, source_address=(f"127.0.{peer // 250}.{peer % 250 + 2}", 0)
        )
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def api(self, method, path, body=None, status=200, **headers):
        found, text, _ = self.ask(
            f"/api/v1/{path}",
            method,
            None if body is None else json.dumps(body),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers},
        )
        self.assertEqual(found, status, text)
        return json.loads(text)

    def form(self, operation, *fields, status=303):
        found, text, headers = self.ask(
            f"/do/{operation}",
            "POST",
            urllib.parse.urlencode(fields),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/x-www-form-urlencoded"},
        )
        self.assertEqual(found, status, text)
        return headers.get("Location", text.decode())

    def page(self, path):
        status, text, _ = self.ask(path, headers={"Authorization": f"Bearer {self.token}"})
        self.assertEqual(status, 200, text)
        return text.decode()

    def link(self, **what):
        made = self.api("POST", "shares", what)
        url = urllib.parse.urlsplit(made["link"])
        self.files = f"{url.scheme}://{url.netloc}"
        return url.path, made["id"]

    def shelf(self, name, *pages):
        shelf = self.api("POST", "shelves", {"name": name})["shelf"]
        if pages:
            self.api("POST", "shelve", {"shelf": name, "ids": [self.ids[one] for one in pages]})
        self.addCleanup(self.api, "DELETE", f"shelves/{shelf}")
        return shelf

    def read(self, path):
        return self.ask(urllib.parse.quote(path, safe="/?=&%"), origin=self.files)

    def seen(self, link):
        """The keys of the snapshots that a link shows, by its files and by its pages: the same ones."""
        found = [self.read(f"{link}{self.directory[id]}/index.html")[0] == 200 for id in self.ids.values()]
        pages = [self.read(f"{link}page/{id}")[0] == 200 for id in self.ids.values()]
        self.assertEqual(found, pages)
        return " ".join(sorted(key for key, is_there in zip(self.ids, found) if is_there))

    def test_a_link_shows_what_it_shares_and_nothing_else(self):
        self.shelf("ours", "h", "a")
        self.api("POST", "shelves", {"name": "live", "tag": "news"})
        ours = self.link(shelf="ours")[0]
        links = {"a": self.link(snapshot=self.ids["a"])[0], "a a2": self.link(url=f"{self.web.url}/a")[0]}
        for shown, link in {**links, "a h": ours, "a2 c2": self.link(shelf="live")[0]}.items():
            self.assertEqual(self.seen(link), shown)
            status, text, headers = self.read(link)
            self.assertEqual(status, 200)
            for id in self.ids.values():
                self.assertLessEqual(id.encode() in text, id in [self.ids[key] for key in shown.split()])
            self.assertIn("sandbox", headers["Content-Security-Policy"])
            self.assertIn("script-src 'none'", headers["Content-Security-Policy"])
            self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertNotIn(b"<script", text)
            self.assertNotIn("\u202e".encode(), text)
            self.assertNotIn(self.front.encode(), text, "nothing leads to the archive's pages")
            status, _, headers = self.read(f"{link}{self.directory[self.ids[shown.split()[0]]]}/manifest-sha256.txt")
            self.assertEqual((status, headers["Cache-Control"]), (200, "no-store"))
            there = self.directory[self.ids[shown.split()[0]]]
            for path in (
                f"{there}/../../index.html",
                f"{there}/%2e%2e/index.html",
                there[:-1],
                f"{there}x/index.html",
                "crawls/",
                "kept/",
                ".holdfast",
                "//",
                f"{there}//index.html",
                "page/",
                "page/x",
            ):
                self.assertEqual(self.read(link + path)[0], 404, path)  # fmt: skip
        self.api("POST", "shelve", {"shelf": "ours", "ids": [self.ids["c2"]]})
        self.assertEqual(self.seen(ours), "a c2 h")
        self.api("POST", "unshelve", {"shelf": "ours", "ids": [self.ids["a"]]})
        self.assertEqual(self.seen(ours), "c2 h", "at once")

    def test_links_that_are_not_valid_have_one_answer(self):
        link, id = self.link(snapshot=self.ids["a"], expires="1h")
        status, text, _ = self.read(link)
        self.assertEqual(status, 200)
        none = self.read("/share/" + "0" * 64 + "/")
        self.assertEqual(none[0], 404)
        own = f"{link}{self.directory[self.ids['a']]}/index.html"
        self.assertEqual(self.read(own)[0], 200)

        def same(path):
            answer = self.read(path)
            self.assertEqual([answer[0], answer[1]], [none[0], none[1]], path)
            self.assertEqual(set(answer[2]), set(none[2]), path)

        secret = link.split("/")[2]
        for cut in (link[:-1], f"/share/{secret[:-1]}/", f"/share/{secret.upper()}/", "/share/", "/share//", "/share/x/",
                    f"/share/{secret}0/", f"{link}page/{self.ids['c2']}", f"{link}page/" + "0" * 8):  # fmt: skip
            same(cut)
        self.assertNotIn(secret, json.dumps(self.api("GET", "shares")))
        kept = self.place.holdfast("psql", "--role", "owner", "-Atqc", "select s::text from holdfast.share s").out
        self.assertNotIn(secret, kept)
        self.assertIn(id, kept)
        self.assertTrue(self.api("POST", f"shares/{id}/revoke")["changed"])
        self.assertFalse(self.api("POST", f"shares/{id}/revoke")["changed"])
        same(link)
        same(own)
        link, id = self.link(url=f"{self.web.url}/a")
        self.place.holdfast(
            *("psql", "--role", "owner", "-qc"),
            f"update holdfast.share set created_at = now() - interval '2 d', expires_at = now() where id = '{id}'",
        )
        same(link)
        states = {row["id"]: row["state"] for row in self.api("GET", "shares")["items"]}
        self.assertEqual(states[id], "expired")
        shelf = self.api("POST", "shelves", {"name": "gone"})["shelf"]
        link = self.link(shelf=shelf)[0]
        self.assertEqual(self.read(link)[0], 200)
        self.api("DELETE", f"shelves/{shelf}")
        same(link)
        for body in ({}, {"snapshot": self.ids["a"], "shelf": "x"}, {"url": "http://never.example/"},
                     {"snapshot": "0" * 8 + "-0000-7000-8000-" + "0" * 12}, {"shelf": "never"},
                     {"snapshot": self.ids["a"], "expires": "9999d"}):  # fmt: skip
            self.api("POST", "shares", body, 422)
        self.api("POST", "shares", {"snapshot": self.ids["a"], "expires": "soon"}, 400)
        key = {"Idempotency-Key": "once"}
        first = self.api("POST", "shares", {"snapshot": self.ids["a"]}, **key)
        again = self.api("POST", "shares", {"snapshot": self.ids["a"]}, **key)
        self.assertEqual([first["id"], None, False], [again["id"], again["link"], again["changed"]])

    def routes(self):
        """(method, path): pages and lists, what site.cpp answers by itself, and each operation of the API."""
        paths = set(re.findall(r'Route\{"(/[^"]*)"', (SERVE / "routes.cpp").read_text()))
        source = (SERVE / "site.cpp").read_text()
        paths |= set(re.findall(r'path == "(/[^"]*)"', source)) | set(re.findall(r'constexpr .* = "(/[^"]*)"', source))
        paths |= set(re.findall(r'"(/[a-z]+/)', (SERVE / "memento.cpp").read_text()))
        paths |= set(re.findall(r'href="(/[a-z]+)"', self.page("/lists")))
        self.assertGreater(len(paths), 45)
        crawl = self.place.run("list", "crawls", "--json").records[0]["id"]
        ids = [self.ids["b"], self.ids["c2"], crawl]  # that no link shares
        for path in {path for path in paths - PUBLIC if not path.startswith("/api/")}:  # those are below
            yield "GET", path
            if path.endswith("/"):
                yield from (("GET", path + id) for id in ids)
        yield "GET", "/atom?shelf=ours"
        document = self.ask("/api/openapi.json", headers={"Authorization": f"Bearer {self.token}"})[1]
        for path, methods in json.loads(document)["paths"].items():
            for method, id in itertools.product(methods, ids if "{id}" in path else ids[:1]):
                yield method.upper(), path.replace("{id}", id)
                yield "POST", "/do/" + methods[method]["operationId"]

    def test_no_route_answers_to_a_link(self):
        self.shelf("ours", "h")
        links = [self.link(**what)[0] for what in
                 ({"snapshot": self.ids["a"]}, {"url": f"{self.web.url}/a"}, {"shelf": "ours"})]  # fmt: skip
        cookie = "holdfast_" + self.place.holdfast("psql", "-Atqc", "select right(id::text, 8) from holdfast.collection").out.strip()  # fmt: skip
        routes = sorted(set(self.routes()))
        self.assertGreater(len(routes), 200)
        before = self.place.run("list", "commands", "--json").records, self.api("GET", "shelves")

        def refused(path, method="GET", origin=None, **headers):
            body = "{}" if method != "GET" else None
            if method != "GET":
                headers["Content-Type"] = "application/json"
            status, text, _ = self.ask(path, method, body, origin, {k.replace("_", "-"): v for k, v in headers.items()})
            only_read = (405,) if origin and method != "GET" else REFUSED
            self.assertIn(status, only_read, (method, path, headers, text[:300]))

        for kind, link in enumerate(links):
            secret = link.split("/")[2]
            for at, (method, path) in enumerate(routes):
                basic = base64.b64encode(f"any:{secret}".encode()).decode()
                credentials = (
                    {"Authorization": f"Bearer {secret}"},
                    {"Authorization": f"Basic {basic}"},
                    {"Cookie": f"{cookie}={secret}"},
                )
                refused(path, method, **credentials[(at + kind) % 3])
                refused(f"{link[:-1]}{path}", method)
                sign = "&" if "?" in path else "?"
                refused(f"{path}{sign}link={secret}&share={secret}", method)
                for prefix in (f"/{secret[:32]}", f"/{secret}", link[:-1]):
                    if prefix + path != link:  # what is shared
                        refused(prefix + path, method, self.files)
        self.assertEqual((self.place.run("list", "commands", "--json").records, self.api("GET", "shelves")), before)

    def test_a_shelf_on_the_pages(self):
        where = self.form("addShelf", ("name", "tab"), ("description", "One\nTwo"), ("back", "/shelves"))
        shelf = where.rsplit("/", 1)[1]
        self.addCleanup(self.api, "DELETE", f"shelves/{shelf}")
        self.assertEqual(where, f"/shelf/{shelf}")
        for key in "abh":
            self.form("shelve", ("id", self.ids[key]), ("shelf", "tab"), ("back", where))

        def order(path=where):
            found = re.findall(r'href="/snapshot/([^"]+)"', self.page(path))
            return "".join(key for id in dict.fromkeys(found) for key in self.ids if self.ids[key] == id)

        self.assertEqual(order(), "abh")
        by_time = "".join(sorted("abh", key=self.ids.get, reverse=True))
        self.assertEqual(order(f"{where}?as=timeline"), by_time)
        rows = self.page(f"{where}?as=list")
        up = re.findall(r'name="place" value="(before [^"]+)"', rows)
        self.assertEqual([one.split()[1] for one in up], [self.ids["a"], self.ids["b"]])
        self.form("shelve", ("id", self.ids["h"]), ("shelf", shelf), ("place", up[1]), ("back", where))
        self.assertEqual(order(f"{where}?as=list"), "ahb")
        self.form("unshelve", ("id", self.ids["a"]), ("shelf", shelf), ("back", where))
        self.assertEqual(order(), "hb")
        self.assertIn("tab", self.page("/shelves"))
        self.assertIn("2 pages", self.page("/shelves"))
        self.assertNotIn("<script>alert", self.page(where))
        feed = ElementTree.fromstring(self.page("/atom?shelf=tab"))
        titles = [one.text for one in feed.iter("{http://www.w3.org/2005/Atom}title")]
        self.assertEqual([titles[0], len(titles)], ["tab", 3])
        self.assertEqual(self.ask("/atom?shelf=never", headers={"Authorization": f"Bearer {self.token}"})[0], 404)
        made = self.form("share", ("shelf", shelf), ("expires", "1d"), ("back", where), status=200)
        self.assertRegex(made, r"/share/[0-9a-f]{64}/")
        self.assertIn("Revoke", self.page("/shares"))
        kept = self.page("/search?q=solar&host=127.0.0.1")
        self.assertIn("Keep this search as a shelf", kept)
        for path in ("/shelf/" + self.ids["a"], "/shelf/x"):
            self.assertEqual(self.ask(path, headers={"Authorization": f"Bearer {self.token}"})[0], 404)

    def test_a_text_that_another_tab_has_changed_is_not_lost(self):
        shelf = self.shelf("two tabs", "a")
        version = re.search(r'name="version" value="(\d+)"', self.page(f"/shelf/{shelf}")).group(1)
        seen = [("id", shelf), ("version", version), ("name", "two tabs"), ("back", f"/shelf/{shelf}")]
        self.form("changeShelf", *seen, ("description", "The first"))
        said = self.form("changeShelf", *seen, ("description", "The second"), status=422)
        self.assertIn("was changed by token tester", said)
        self.assertEqual(self.api("GET", f"shelves/{shelf}")["description"], "The first")
        self.form("changeShelf", ("id", shelf), ("name", "two tabs"), ("description", ""), ("back", "/"))
        self.assertEqual(self.api("GET", f"shelves/{shelf}")["description"], "")
        self.api("PATCH", f"shelves/{shelf}", {"name": "x"}, 412, **{"If-Match": '"seen"'})

    def test_pages_of_a_shelf_by_cursor(self):
        shelf = self.shelf("many", "c2", "a", "h", "b", "a2")
        found, cursor = [], ""
        while cursor is not None:
            page = self.api("GET", f"shelves/{shelf}/pages?limit=2" + (f"&cursor={cursor}" if cursor else ""))
            found += [row["id"] for row in page["items"]]
            cursor = page["cursor"]
            if len(found) == 2:  # the page at the cursor goes
                self.api("POST", "unshelve", {"shelf": shelf, "ids": [self.ids["a"]]})
        self.assertEqual(found, [self.ids[key] for key in ("c2", "a", "h", "b", "a2")])
        by_time = self.api("GET", f"shelves/{shelf}/pages?order=time")["items"]
        left = sorted((self.ids[key] for key in ("c2", "a2", "h", "b")), reverse=True)
        self.assertEqual([row["id"] for row in by_time], left)

    def test_one_file_of_a_shelf(self):
        self.shelf("wacz", "c2", "h", "b")
        path = self.place.data / "shelf.wacz"
        self.place.holdfast("export", "--shelf", "wacz", "-o", str(path))
        with zipfile.ZipFile(path) as file:
            pages = [json.loads(line) for line in file.read("pages/pages.jsonl").splitlines()][1:]
        self.assertEqual([page["url"].rsplit("/", 1)[1] for page in pages], ["c", "hostile", "b"], "in its order")
        listed = self.place.holdfast("export", "--shelf", "wacz", "--tag", "old", "--format", "json", "-o", "-").out
        self.assertEqual([json.loads(line)["url"][-2:] for line in listed.splitlines() if line], ["le", "/b"])
        self.assertNotEqual(self.place.run("export", "--shelf", "never", "-o", str(path)).code, 0)
        self.assertNotEqual(self.place.run("export", "--shelf", "wacz", self.ids["b"], "-o", str(path)).code, 0)

    def test_a_download_is_what_export_writes(self):
        shelf = self.shelf("download", "c2", "h", "b")
        token = {"Authorization": f"Bearer {self.token}"}
        for chosen, option in (
            (f"shelf={shelf}", ("--shelf", shelf)),
            (f"shelf={shelf}&format=files", ("--shelf", shelf, "--format", "files")),
            (f"of={self.ids['b']}", (self.ids["b"],)),
            ("tag=old", ("--tag", "old")),
        ):
            with self.subTest(chosen):
                status, body, headers = self.ask(f"/api/v1/export?{chosen}", headers=token)
                self.assertEqual((status, headers["Content-Type"]), (200, "application/zip"))
                path = self.place.data / ("there.zip" if "files" in option else "there.wacz")
                self.place.holdfast("export", *option, "-o", str(path))
                with zipfile.ZipFile(path) as there, zipfile.ZipFile(io.BytesIO(body)) as here:
                    self.assertEqual(here.namelist(), there.namelist())
                    self.assertIsNone(here.testzip())
        for chosen, status in (("tag=none", 404), ("", 400), (f"of={self.ids['b']}&shelf={shelf}", 400), ("of=x", 422)):
            with self.subTest(chosen):
                self.assertEqual(self.ask(f"/api/v1/export?{chosen}", headers=token)[0], status)
        self.assertEqual(self.ask("/api/v1/export?tag=old")[0], 401)
        self.assertIn(f'href="/api/v1/export?shelf={shelf}"', self.page(f"/shelf/{shelf}"))

    def test_downloads_end_with_their_programs_and_are_few(self):
        shelf = self.shelf("few", "a")
        token = {"Authorization": f"Bearer {self.token}"}

        def download():
            return self.ask(f"/api/v1/export?shelf={shelf}", headers=token)[0]

        def exports():
            return [pid for pid in processes() if f"--shelf={shelf}".encode() in read(f"/proc/{pid}/cmdline")]

        psql = self.place.start("psql", "--role", "owner", "-XAqt", stdin=subprocess.PIPE)
        psql.stdin.write("begin; lock table capture; select 'locked';\n")
        psql.stdin.flush()
        self.assertEqual(psql.stdout.readline(), "locked\n")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            running = [pool.submit(download) for _ in range(2)]
            first, second = until("both run", lambda: len(found := exports()) == 2 and found)
            for pid in (first, second):
                os.kill(pid, signal.SIGSTOP)
            self.assertEqual(download(), 429)
            os.kill(first, signal.SIGKILL)
            until("one has ended", lambda: any(one.done() for one in running))
            psql.stdin.write("commit;\n")
            psql.stdin.close()
            psql.stdin = None
            self.assertEqual(self.place.finish(psql).code, 0)
            os.kill(second, signal.SIGCONT)
            self.assertEqual(sorted(one.result() for one in running), [200, 500])
        self.assertEqual(download(), 200)
