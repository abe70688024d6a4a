"""The HTTP API: what the verbs do, its document, its refusals, and what a client that tries everything finds."""

import base64
import gzip
import html
import http.client
import json
import os
import re
import signal
import subprocess
import urllib.parse
from pathlib import Path

from harness.full import FULL, some_of
from harness.strange import NUL, VALUES
from harness.case import PROGRAM, Case
from harness.wait import until
from test_pages import Site

from harness.environment import python_with

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("HOLDFAST_API_TOOLS", Path(PROGRAM or "/").parents[1] / "api-tools"))
NEVER = "00000000-0000-7000-8000-000000000000"
REQUESTS = os.environ.get("HOLDFAST_API_EXAMPLES", "3")  # of schemathesis, for each operation


def tools():
    """The validator and the client."""
    return python_with(TOOLS, "openapi-spec-validator", "schemathesis")


class Asking(Case):
    """What every answer has."""

    def ask(self, method, path, body=None, status=200, **headers):
        if body is not None:
            headers = {"Content-Type": "application/json", **headers}
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.site.get("/api/" + path, method=method, body=body, headers=headers)
        self.assertEqual(answer.status, status, f"{method} {path}: {answer.text}")
        expected = "application/problem+json" if status >= 400 else "application/json"
        if status != 304:
            self.assertEqual(answer.headers["Content-Type"], expected)
            answer.json = json.loads(answer.text)
        return answer

    def problem(self, method, path, body=None, status=400, kind="usage", **headers):
        told = self.ask(method, path, body, status, **headers).json
        self.assertEqual((told["status"], told["title"]), (status, kind))
        self.assertEqual(told["type"], f"urn:holdfast:error:{kind}")
        self.assertTrue(told["detail"])
        return told

    def add(self, *urls, **options):
        return self.ask("POST", "v1/crawls", {"urls": list(urls), **options}, status=201).json

    def stream(self, path, site=None, **headers):
        """Events as they come: (event, data, id)."""
        site = site or self.site
        connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers={**site.headers, **headers})
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        self.assertEqual(response.headers["Content-Type"], "text/event-stream")

        def events():
            one = {}
            while line := response.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name == ":":  # the server is still there
                    response.readline()
                elif name:
                    one[name] = value
                elif one:
                    yield one.get("event"), json.loads(one["data"]), one.get("id")
                    one = {}

        return events()


class Shared(Asking):
    """One site for all cases."""

    @classmethod
    def tearDownClass(cls):
        cls.site.close()
        cls.owner.doCleanups()

    def run_nothing(self):
        pass


class Api(Shared):
    @classmethod
    def setUpClass(cls):
        cls.owner = cls("run_nothing")
        cls.site = Site(cls.owner, "--set", "serve.guest=none", token="operator")
        cls.reader = cls.site.place.run("token", "add", "bert").records[0]["token"]

    def test_add_lists_and_shows(self):
        told = self.ask("POST", "v1/crawls", {"urls": ["http://127.0.0.1:9/dry"], "dry_run": True}).json
        self.assertEqual((told["urls"], told["added"]), (["http://127.0.0.1:9/dry"], False))
        self.assertEqual(self.ask("GET", "v1/snapshots?url=9/dry").json["items"], [])
        made = self.add(
            "http://127.0.0.1:9/one",
            text="http://127.0.0.1:9/two a title\nno url\n",
            label="by api",
            tags=["api"],
            max_depth=1,
            max_urls=9,
            options={"PAGE_TIMEOUT": "52"},
            priority=3,
            max_parallel=2,
            same="host",
            robots=False,
        )
        self.assertEqual((made["seeds"], made["left_out"], made["added"]), (2, 1, True))
        self.assertIn("no url", made["problems"])
        crawl = self.ask("GET", f"v1/crawls/{made['id']}").json
        self.assertEqual((crawl["label"], crawl["max_depth"], crawl["created_by"]), ("by api", 1, "token anna"))
        self.assertIn(made["id"], [row["id"] for row in self.ask("GET", "v1/crawls?tag=api").json["items"]])
        self.assertEqual(self.ask("GET", f"v1/why?of={made['id']}").json["kind"], "crawl")
        self.assertEqual(self.ask("GET", "v1/search?q=good").json["cursor"], None)
        for path in ("status", "queue", "running", "workers", "failures", "hosts", "sessions", "binaries", "webhooks"):
            self.ask("GET", f"v1/{path}")
        self.site.place.run("run")
        rows = self.ask("GET", f"v1/snapshots?crawl={made['id']}&limit=1").json
        rest = self.ask("GET", f"v1/snapshots?crawl={made['id']}&cursor={rows['cursor']}").json
        self.assertEqual({row["url"][-3:] for row in rows["items"] + rest["items"]}, {"one", "two"})
        self.assertIsNone(rest["cursor"])
        snapshot = rows["items"][0]["id"]
        self.assertEqual(self.ask("GET", f"v1/snapshots/{snapshot}").json["outcome"], "succeeded")
        self.assertTrue(self.ask("GET", f"v1/results?snapshot={snapshot}").json["items"])
        events = self.ask("GET", f"v1/events?crawl={made['id']}&limit=1000").json
        self.assertIn("seal", [event["event"] for event in events["items"]])
        self.assertEqual(self.ask("GET", f"v1/events?after={events['cursor']}&crawl={made['id']}").json["items"], [])

    def test_titles_notes_and_times(self):
        made = self.add("http://127.0.0.1:9/edited")["id"]
        self.site.place.run("run", "--crawl", made)
        [page] = self.ask("GET", f"v1/snapshots?crawl={made}").json["items"]
        path = f"v1/snapshots/{page['id']}"
        change = {"title": "Wandering <b>albatross</b>", "notes": "See page 2", "add_tags": ["birds"]}
        self.assertTrue(self.ask("PATCH", path, change).json["changed"])
        self.assertFalse(self.ask("PATCH", path, {"title": change["title"]}).json["changed"])
        shown = self.ask("GET", path).json
        self.assertEqual((shown["title"], shown["notes"], shown["tags"]), (*list(change.values())[:2], ["birds"]))
        self.ask("PATCH", path, {"title": "", "remove_tags": ["birds"]})
        shown = self.ask("GET", path).json
        self.assertEqual((shown["title"], shown["notes"], shown["tags"]), (page["title"], "See page 2", []))
        self.problem("PATCH", path, {"title": 5})
        self.problem("PATCH", path, {"title": "t"}, 403, "forbidden", Authorization="Bearer " + self.reader)

        later = self.add("http://127.0.0.1:9/later")["id"]
        self.assertTrue(self.ask("POST", f"v1/crawls/{later}/pause").json["changed"])
        self.problem("POST", f"v1/crawls/{later}/resume", {"at": "tomorrowish"})
        self.assertEqual(self.ask("GET", f"v1/crawls/{later}").json["status"], "paused")
        at = {"at": "2099-12-24T18:00:00+01:00", "why": "that evening"}
        self.assertTrue(self.ask("POST", f"v1/crawls/{later}/resume", at).json["changed"])
        shown = self.ask("GET", f"v1/crawls/{later}").json
        self.assertEqual((shown["status"], shown["retry_at"][:19]), ("queued", "2099-12-24T17:00:00"))
        self.assertIn("that evening", shown["reason"])
        self.ask("POST", f"v1/crawls/{later}/cancel")

    def test_a_key_adds_once(self):
        body = {"urls": ["http://127.0.0.1:9/once"]}
        first = self.ask("POST", "v1/crawls", body, 201, **{"Idempotency-Key": "k1"})
        again = self.ask("POST", "v1/crawls", body, 200, **{"Idempotency-Key": "k1"})
        self.assertEqual((again.json["id"], again.json["added"]), (first.json["id"], False))
        self.assertEqual(first.headers["Location"], f"/api/v1/crawls/{first.json['id']}")
        other = {"urls": ["http://127.0.0.1:9/other"]}
        self.problem("POST", "v1/crawls", other, 422, "refused", **{"Idempotency-Key": "k1"})
        self.assertEqual(len(self.ask("GET", "v1/crawls?url=9/once").json["items"]), 1)

    def test_a_key_holds_for_every_post(self):
        crawl = self.add("http://127.0.0.1:9/keyed")["id"]
        self.site.place.run("run")
        every = {"every": "daily", "urls": ["http://127.0.0.1:9/keyed-daily"], "label": "keyed"}
        schedule = self.ask("POST", "v1/schedules", every).json["id"]
        for number, (path, body, status, again) in enumerate(
            (
                ("v1/retry", {"ids": [crawl]}, 201, 201),
                (f"v1/schedules/{schedule}/run", {}, 201, 201),
                ("v1/cli/add", {"urls": ["http://127.0.0.1:9/cli-once"]}, 200, 200),
                ("v1/schedules", {**every, "label": "other"}, 200, 200),
                (f"v1/schedules/{schedule}/pause", {}, 200, 200),
            )
        ):
            with self.subTest(path):
                key = {"Idempotency-Key": f"every{number}"}
                count = lambda: [
                    len(self.ask("GET", f"v1/{name}?limit=1000").json["items"]) for name in ("crawls", "schedules")
                ]
                first = self.ask("POST", path, body, status, **key).json
                before = count()
                second = self.ask("POST", path, body, again, **key).json
                self.assertEqual(count(), before)
                if again == status and "id" in first:
                    self.assertEqual(second["id"], first["id"])
                self.problem("POST", "v1/pause", {"why": "x"}, 422, "refused", **key)

    def test_commands_change_what_they_name(self):
        one = self.add("http://127.0.0.1:9/cmd", label="cmd")["id"]
        self.assertTrue(self.ask("POST", f"v1/crawls/{one}/pause", {"why": "a break"}).json["changed"])
        self.assertIn("a break", self.ask("GET", f"v1/why?of={one}").json["reason"])
        self.assertFalse(self.ask("POST", f"v1/crawls/{one}/pause").json["changed"])
        self.assertTrue(self.ask("POST", f"v1/crawls/{one}/resume").json["changed"])
        self.ask("PATCH", f"v1/crawls/{one}", {"label": "new", "add_tags": ["t"], "priority": 5, "keep": "90d"})
        crawl = self.ask("GET", f"v1/crawls/{one}").json
        self.assertEqual((crawl["label"], crawl["tags"], crawl["priority"]), ("new", ["t"], 5))
        self.ask("POST", f"v1/crawls/{one}/scope", {"add": {"deny": ["ads.example"]}})
        self.site.place.run("run")
        again = self.ask("POST", "v1/retry", {"ids": [one]}, 201).json
        self.assertEqual(again["seeds"], 1)
        self.assertTrue(self.ask("POST", f"v1/crawls/{again['id']}/cancel").json["changed"])
        self.site.place.run("run")
        self.assertTrue(self.ask("DELETE", f"v1/crawls/{again['id']}").json["changed"])
        self.problem("GET", f"v1/crawls/{again['id']}", status=404, kind="not_found")

        self.ask("PUT", "v1/hosts/slow.example", {"delay": "5s", "parallel": 1})
        (host,) = self.ask("GET", "v1/hosts?url=slow.example").json["items"]
        self.assertEqual(host["max_parallel"], 1)
        self.assertTrue(self.ask("POST", "v1/hosts/slow.example/pause").json["changed"])
        self.assertTrue(self.ask("POST", "v1/hosts/slow.example/resume").json["changed"])
        self.assertTrue(self.ask("DELETE", "v1/hosts/slow.example").json["changed"])

        schedule = self.ask("POST", "v1/schedules", {"every": "daily", "urls": ["http://127.0.0.1:9/s"]}).json["id"]
        self.assertTrue(self.ask("POST", f"v1/schedules/{schedule}/pause").json["changed"])
        self.assertEqual(self.ask("GET", "v1/schedules").json["items"][0]["state"], "paused")
        self.assertTrue(self.ask("POST", f"v1/schedules/{schedule}/run", status=201).json["changed"])
        self.assertTrue(self.ask("DELETE", f"v1/schedules/{schedule}").json["changed"])

        self.ask("PUT", "v1/webhooks/ops", {"url": "https://hooks.example/x"})
        self.ask("POST", "v1/webhooks/ops/test")
        self.assertEqual(len(self.ask("GET", "v1/deliveries").json["items"]), 1)
        self.ask("POST", "v1/webhooks/ops/pause")
        self.ask("DELETE", "v1/webhooks/ops")
        self.assertTrue(self.ask("POST", "v1/pause", {"why": "night"}).json["changed"])
        self.assertIn("night", self.ask("GET", "v1/status").json["paused"])
        self.assertTrue(self.ask("POST", "v1/resume").json["changed"])

    def test_a_worker_drains(self):
        worker = self.site.place.start("run", "--daemon")
        (row,) = until(
            "a worker runs",
            lambda: [
                one
                for one in self.ask("GET", "v1/workers?limit=5").json["items"]
                if one["process_type"] == "worker" and not one["ended_at"]
            ],
        )
        self.assertTrue(self.ask("POST", f"v1/workers/{row['id']}/drain", {"why": "upgrade"}).json["changed"])
        until(
            "it has ended",
            lambda: [one for one in self.ask("GET", "v1/workers").json["items"] if one["id"] == row["id"]][0][
                "ended_at"
            ],
        )
        worker.terminate()
        self.site.place.finish(worker)

    def test_wrong_requests_are_problems(self):
        for path, what in (
            ("v1/crawls?nothing=1", "nothing"),
            ("v1/crawls?limit=0", "limit"),
            ("v1/crawls?limit=x", "limit"),
            ("v1/crawls?cursor=x", "cursor"),
            ("v1/why", "of"),
            ("v1/search?q=a&all=maybe", "all"),
            ("v1/search", "q"),
            ("v1/search?q=", "q"),
            ("v1/snapshots?limit=1&limit=2", "limit"),
        ):
            told = self.problem("GET", path)
            self.assertIn(what, told["detail"])
            self.assertEqual(told["field"], what)
            self.assertIn(told["code"], ("field_unknown", "field_missing", "field_repeated", "field_invalid"))
        url = "http://127.0.0.1:9/wrong"
        for body, code in (
            (f'{{"urls": ["{url}"], "urls": ["{url}/b"], "dry_run": true}}', "field_repeated"),
            (
                f'{{"urls": ["{url}"], "options": {{"TIMEOUT": "1", "TIMEOUT": "2"}}, "dry_run": true}}',
                "field_repeated",
            ),
            (f'{{"urls": ["{url}"], "options": {{"USER_AGENT": "a\\r\\nX: b"}}, "dry_run": true}}', "usage"),
        ):
            self.assertEqual(self.problem("POST", "v1/crawls", body.encode())["code"], code)
        self.problem("GET", "v1/crawls?since=never")
        self.problem("GET", "v1/%00")
        self.problem("GET", "v1/nothing", status=404, kind="not_found")
        self.problem("GET", f"v1/crawls/{NEVER}", status=404, kind="not_found")
        self.problem("GET", "v1/why?of=ffffffffff", status=404, kind="not_found")
        self.problem("POST", f"v1/crawls/{NEVER}/pause", status=404, kind="not_found")
        self.problem("POST", "v1/crawls/x/pause", status=404, kind="not_found")
        self.assertIn("GET", self.ask("PUT", "v1/crawls", {}, 405).headers["Allow"])
        for body, what in (
            (b"[]", "object"),
            (b"{", "object"),
            ({"urls": "x"}, "urls"),
            ({"urls": [1]}, "urls"),
            ({"urls": ["http://a.example/\0"]}, "U+0000"),
            ({"max_depth": 99, "urls": []}, "max_depth"),
            ({"max_depth": 1.5, "urls": []}, "max_depth"),
            ({"options": {"X": 1}}, "options.X"),
            ({"color": "red"}, "color"),
        ):
            self.assertIn(what, self.problem("POST", "v1/crawls", body)["detail"])
        self.problem("POST", "v1/crawls", b"{}", **{"Content-Type": "text/plain"})
        for body in ({}, {"urls": ["nonsense"]}, {"urls": ["ftp://a.example/"]}):
            self.problem("POST", "v1/crawls", body, 422, "refused")
        secret = self.site.place.path / "list.txt"
        secret.write_text("http://127.0.0.1:9/from-a-file\n")
        self.problem("POST", "v1/crawls", {"urls": [str(secret)]}, 422, "refused")
        self.problem("POST", "v1/crawls", {"urls": ["-"]}, 422, "refused")
        self.problem("POST", "v1/crawls", {"urls": ["http://a.example/"], "plugins": ["none-such"]})
        self.problem("PUT", "v1/hosts/a%20b", {"delay": "1s"})
        self.problem("PUT", "v1/hosts/a.example", {"delay": "soon"})

    def test_who_may(self):
        reader = {"Authorization": f"Bearer {self.reader}"}
        self.ask("GET", "v1/crawls", **reader)
        self.problem("POST", "v1/pause", status=403, kind="forbidden", **reader)
        self.problem("GET", "v1/crawls", status=401, kind="unauthorized", Authorization="")
        self.problem("POST", "v1/pause", status=401, kind="unauthorized", Authorization="Bearer x")
        # A cookie of ours in a request that another page makes the browser send.
        entered = self.site.post("/sign-in", {"token": self.site.token}, headers={"Authorization": ""})
        cookie = {"Authorization": "", "Cookie": entered.headers["Set-Cookie"].split(";")[0]}
        self.ask("POST", "v1/resume", **cookie)
        for other in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            self.problem("POST", "v1/pause", status=403, kind="forbidden", **cookie, **other)
            self.ask("POST", "v1/resume", **other)  # a token in a header is no cookie

    def test_what_has_not_changed_is_not_sent_again(self):
        first = self.ask("GET", "v1/schedules")
        self.assertEqual(
            self.ask("GET", "v1/schedules", status=304, **{"If-None-Match": first.headers["ETag"]}).text, ""
        )
        self.ask("GET", "v1/schedules", **{"If-None-Match": '"other"'})

    def bytes_of(self, path, **headers):
        """An answer as it was sent, and its headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=30)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers={**self.site.headers, **headers})
        answer = connection.getresponse()
        return answer, answer.read()

    def test_text_is_compressed_for_those_who_take_it(self):
        for path in ("/api/openapi.json", "/style.css", "/live.js", "/"):
            whole, text = self.bytes_of(path)
            small, data = self.bytes_of(path, **{"Accept-Encoding": "br, GZIP;Q=0.8"})
            self.assertEqual((whole.headers["Content-Encoding"], small.headers["Content-Encoding"]), (None, "gzip"))
            self.assertEqual((whole.headers["Vary"], small.headers["Vary"]), ("Accept-Encoding",) * 2)
            self.assertLess(len(data), len(text))
            if path != "/":  # which shows what goes on
                self.assertEqual(gzip.decompress(data), text)
                self.assertNotEqual(whole.headers["ETag"], small.headers["ETag"])
                for tag in (whole.headers["ETag"], small.headers["ETag"], f'"x", W/{whole.headers["ETag"]}', "*"):
                    again, nothing = self.bytes_of(path, **{"If-None-Match": tag, "Accept-Encoding": "gzip"})
                    self.assertEqual((again.status, nothing), (304, b""), tag)
            self.assertIsNone(self.bytes_of(path, **{"Accept-Encoding": "gzip;q=0.00"})[0].headers["Content-Encoding"])
        self.assertIsNone(
            self.bytes_of("/api/v1/status", **{"Accept-Encoding": "gzip"})[0].headers["Content-Encoding"], "too short"
        )

    def test_a_change_may_depend_on_what_was_seen(self):
        one = self.add("http://127.0.0.1:9/seen", label="first")["id"]
        tag = self.ask("GET", f"v1/crawls/{one}").headers["ETag"]
        self.assertEqual(self.ask("GET", f"v1/crawls/{one}").headers["ETag"], tag, "as long as nothing changes")
        self.ask("PATCH", f"v1/crawls/{one}", {"label": "second"}, **{"If-Match": f'"other", {tag}'})
        self.problem("PATCH", f"v1/crawls/{one}", {"label": "third"}, 412, "refused", **{"If-Match": tag})
        self.problem("DELETE", f"v1/crawls/{one}", None, 412, "refused", **{"If-Match": tag})
        self.assertEqual(self.ask("GET", f"v1/crawls/{one}").json["label"], "second")
        self.ask("PATCH", f"v1/crawls/{one}", {"label": "third"}, **{"If-Match": "*"})
        self.problem("POST", f"v1/crawls/{one}/pause", None, 412, "refused", **{"If-Match": tag})
        self.problem("PATCH", f"v1/crawls/{NEVER}", {}, 404, "not_found", **{"If-Match": "*"})
        self.ask("POST", f"v1/crawls/{one}/cancel")

    def test_files_of_a_snapshot(self):
        (snapshot,) = self.ask("GET", "v1/snapshots?url=9/good").json["items"]
        files = {file["path"]: file for file in self.ask("GET", f"v1/snapshots/{snapshot['id']}/files").json["items"]}
        self.assertEqual(files["page/notes.txt"]["size"], 6)
        self.assertIn("index.html", files)
        path = files["page/notes.txt"]["url"].split(f":{self.site.files}", 1)[1]
        self.assertEqual(self.site.get(path, self.site.files).text, "plain\n")
        part = self.site.get(path, self.site.files, headers={"Range": "Bytes=1-3"})
        self.assertEqual((part.status, part.text, part.headers["Content-Range"]), (206, "lai", "bytes 1-3/6"))
        open_one = self.add("http://127.0.0.1:9/open", priority=-9)["id"]
        self.assertEqual(self.ask("GET", f"v1/snapshots?crawl={open_one}").json["items"], [])
        self.problem("GET", f"v1/snapshots/{NEVER}/files", status=404, kind="not_found")
        self.ask("POST", f"v1/crawls/{open_one}/cancel")

    def test_crawls_are_sorted_over_all_of_them(self):
        for number in range(101):
            self.add(f"http://127.0.0.1:9/many/{number}", label=f"many {number}")
        links = re.findall(r'href="/crawl/([^"]+)"', self.site.get("/crawls?sort=failed").text)
        self.assertEqual(len(links), 100)
        failed = [self.ask("GET", f"v1/crawls/{one}").json["failed"] for one in links[:3]]
        self.assertGreater(failed[0], 0, "the oldest has failed pages")
        self.assertEqual(failed, sorted(failed, reverse=True))
        page = self.site.get("/crawls?sort=failed").text
        older = html.unescape(re.search(r'class="more" href="([^"]+)"', page).group(1))
        self.assertIn("sort=failed", older)
        rest = re.findall(r'href="/crawl/([^"]+)"', self.site.get(older).text)
        self.assertEqual(set(rest) & set(links), set())
        self.assertEqual(self.site.get("/crawls?sort=nonsense").status, 200)
        for one in self.ask("GET", "v1/crawls?url=9/many/&limit=1000").json["items"]:
            self.ask("POST", f"v1/crawls/{one['id']}/cancel")

    def test_the_paths_of_archivebox(self):
        """With what the client archivebox-api of PyPI (1.0.1) sends by default."""
        key = {"Authorization": "", "X-ArchiveBox-API-Key": self.site.token, "Origin": "chrome-extension://abc"}
        no = dict.fromkeys(("update", "update_all", "index_only", "overwrite", "init"), False)
        body = {"urls": ["http://127.0.0.1:9/ab"], "tag": "a,b", "depth": 0, "extractors": "", "parser": "auto", **no}
        added = self.ask("POST", "v1/cli/add", body, **key).json
        self.assertTrue(added["success"])
        self.assertEqual(added["result"]["queued_urls"], ["http://127.0.0.1:9/ab"])
        self.site.place.run("run")
        always = "with_archiveresults=False&offset=0"
        found = self.ask("GET", f"v1/core/snapshots?{always}&limit=200&page=0&url=http://127.0.0.1:9/ab", **key)
        (item,) = found.json["items"]
        self.ask("GET", f"v1/core/snapshots?{always}&limit=1&page=1", **key)
        for url, count in (("HTTP://127.0.0.1:9/ab", 1), ("http://127.0.0.1:9/a", 0), ("9/ab", 0)):
            found = self.ask("GET", f"v1/core/snapshots?url={url}", **key).json["items"]
            self.assertEqual(len(found), count, url)
        for filter in ("", "&search=9/", "&status=sealed", "&status=queued"):
            whole = self.ask("GET", f"v1/core/snapshots?limit=200{filter}", **key).json["items"]
            for offset in range(len(whole) + 2):
                part = self.ask("GET", f"v1/core/snapshots?limit=2&offset={offset}{filter}", **key).json["items"]
                self.assertEqual(part, whole[offset : offset + 2], (filter, offset))
        self.assertEqual((item["url"], item["tags"]), ("http://127.0.0.1:9/ab", ["a", "b"]))

    def test_the_browser_extension_of_archivebox(self):
        """What version 3.1 sends: paths, methods, headers and bodies as in its source (src/lib/archivebox.ts)."""
        origin = {"Origin": "chrome-extension://abcdefghijklmnop", "Sec-Fetch-Site": "cross-site", "Authorization": ""}
        key = {**origin, "X-ArchiveBox-API-Key": self.site.token}
        page = "http://127.0.0.1:9/extension?a=1&b=%C3%A4"
        for path in ("cli/add", "cli/remove", "auth/check_api_token"):
            asked = {**origin, "Access-Control-Request-Method": "POST"}
            answer = self.site.get(f"/api/v1/{path}", method="OPTIONS", headers=asked)
            self.assertEqual(answer.status, 204)
            self.assertIn("x-archivebox-api-key", answer.headers["Access-Control-Allow-Headers"].lower())
        self.assertEqual(self.site.get("/api/", headers=origin).status, 200)
        valid = self.ask("POST", "v1/auth/check_api_token", {"token": self.site.token}, **origin).json
        self.assertTrue(valid["user_id"])
        for body, status in (({"token": "wrong"}, 401), ({}, 403), ({"token": 1}, 403)):
            self.ask("POST", "v1/auth/check_api_token", body, status, **origin)
        add = {"urls": [page], "tag": "a,b", "formattedTags": "a,b", "depth": 0, "update": False, "update_all": False}
        self.assertTrue(self.ask("POST", "v1/cli/add", add, **key).json["success"])
        self.ask("POST", "v1/cli/add", add, 403, **origin)
        self.site.place.run("run")
        link = self.site.get(f"/archive/{page}")
        self.assertEqual(link.status, 303)
        self.assertIn("9/extension?a=1", html.unescape(self.site.get(link.headers["Location"]).text))
        remove = {"filter_patterns": [page], "filter_type": "exact", "delete": True, "after": 0, "before": 999999999999}
        done = self.ask("POST", "v1/cli/remove", remove, **key).json
        self.assertEqual((done["success"], done["result"]["removed_count"]), (True, 1))
        self.assertEqual(self.ask("GET", "v1/core/snapshots?search=9/extension", **key).json["items"], [])
        self.ask("POST", "v1/cli/remove", {**remove, "filter_type": "substring"}, 400, **key)
        self.ask("POST", "v1/cli/remove", remove, 403, **origin)

    def test_rules_of_http(self):
        token = {"Authorization": f"bearer {self.site.token}"}
        self.ask("GET", "v1/crawls", **token)
        self.ask(
            "POST", "v1/crawls", {"urls": ["http://127.0.0.1:9/case"]}, 201, **{"Content-Type": "Application/JSON"}
        )
        self.site.place.run("run")
        self.assertTrue(self.ask("GET", "v1/snapshots?host=127.0.0.1&limit=1").json["items"])
        self.assertEqual(self.ask("GET", "v1/snapshots?host=W1.Example").json["items"], [])
        for name, value in (("since", "2026-13-01"), ("since", "1h"), ("since", "tomorrow")):
            told = self.problem("GET", f"v1/snapshots?{name}={value}")
            self.assertIn(name, told["detail"])
            self.assertNotIn("datestyle", str(told))
        for path, names in (
            ("crawls?status=foo", ("status", "paused")),
            ("snapshots?outcome=foo", ("outcome", "partial")),
            ("search?q=a&outcome=foo", ("outcome", "foo", "partial")),
        ):
            told = self.problem("GET", "v1/" + path)
            for name in names:
                self.assertIn(name, told["detail"] + told.get("hint", ""))
        port, authorization = self.site.port, f"Authorization: Bearer {self.site.token}\r\n"
        head = f"Host: LocalHost:{port}\r\n{authorization}Connection: close\r\n\r\n"
        for request, status in (
            (f"GET /api/v1/crawls HTTP/1.1\r\n{head}", 200),
            (f"GET http://127.0.0.1:{port}/api/v1/crawls HTTP/1.1\r\n{head}", 200),
            (f"GET HTTP://127.0.0.1:{port} HTTP/1.1\r\n{head}", 200),
            (f"GET http://127.0.0.1:{port}?x=1 HTTP/1.1\r\n{head}", 200),
            ("nonsense\r\n\r\n", 400),
            ("GET /healthz HTTP/1.1\r\n\r\n", 400),
            ("GET /healthz HTTP/1.0\r\n\r\n", 200),
            ("GET / HTTP/9.9\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nno field\r\n\r\n", 400),
            (f"GET / HTTP/1.1\r\nX: {'x' * 40000}\r\n\r\n", 431),
        ):
            with self.subTest(request[:60]):
                self.assertIn(f" {status} ".encode(), self.site.raw(request.encode()).splitlines()[0])

    def test_other_pages_may_use_the_api_with_a_token_only(self):
        elsewhere = {"Origin": "https://elsewhere.example"}
        asked = self.site.get("/api/v1/crawls", method="OPTIONS", headers={**elsewhere, "Authorization": ""})
        self.assertEqual((asked.status, asked.headers["Access-Control-Allow-Origin"]), (204, "*"))
        self.assertIn("Authorization", asked.headers["Access-Control-Allow-Headers"])
        answer = self.site.get("/api/v1/crawls", headers=elsewhere)
        self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, "*"))
        for path, headers in (("/api/v1/crawls", {"Authorization": ""}), ("/crawls", {})):
            self.assertIsNone(
                self.site.get(path, headers={**elsewhere, **headers}).headers["Access-Control-Allow-Origin"]
            )

    def test_tags_are_cleaned(self):
        one = self.add("http://127.0.0.1:9/tags", tags=[" z ", "", "a \t\u00a0b", "\u200b"])["id"]
        self.assertEqual(self.ask("GET", f"v1/crawls/{one}").json["tags"], ["a b", "z"])
        self.ask("PATCH", f"v1/crawls/{one}", {"add_tags": ["", " y ", "z"], "remove_tags": ["a b"]})
        self.assertEqual(self.ask("GET", f"v1/crawls/{one}").json["tags"], ["y", "z"])
        lines = '{"url": "http://127.0.0.1:9/line", "tags": [" one", "", "two "]}'
        self.ask("POST", "v1/crawls", {"text": lines}, 201)
        self.site.place.run("run")
        (page,) = self.ask("GET", "v1/snapshots?url=9/line").json["items"]
        self.assertEqual(page["tags"], ["one", "two"])

    def test_a_file_in_the_form_and_in_the_api(self):
        """Any size, encoding and packing that `add` takes."""
        bookmarks = "<!DOCTYPE NETSCAPE-Bookmark-file-1><DL>" + "".join(
            f'<DT><A HREF="http://127.0.0.1:9/icon/{n}" ICON="data:image/png;base64,{"A" * 1700}">page {n}</A>'
            for n in range(3000)
        )
        for name, content in (
            ("large.html", bookmarks.encode()),
            ("packed.html.gz", gzip.compress(bookmarks.encode())),
            ("wide.html", bookmarks[:5000].encode("utf-16")),
        ):
            with self.subTest(name):
                mark = b"----mark"
                part = b'--%s\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
                body = b"".join(
                    [
                        part % (mark, b"label", b"", name.encode()),
                        part % (mark, b"text", b"", b""),
                        part % (mark, b"file", b'; filename="%s"' % name.encode(), content),
                        b"--%s--\r\n" % mark,
                    ]
                )
                made = self.site.get(
                    "/do/addCrawl",
                    method="POST",
                    body=body,
                    headers={"Content-Type": f"multipart/form-data; boundary={mark.decode()}"},
                )
                self.assertEqual(made.status, 303, made.text[:300])
                crawl = self.ask("GET", "v1" + made.headers["Location"].replace("/crawl/", "/crawls/")).json
                self.assertEqual((crawl["label"], crawl["first_url"]), (name, "http://127.0.0.1:9/icon/0"))
                self.ask("POST", f"v1/crawls/{crawl['id']}/cancel")
        packed = base64.b64encode(gzip.compress(b"http://127.0.0.1:9/packed\n")).decode()
        crawl = self.ask("POST", "v1/crawls", {"file": packed}, 201).json
        self.assertEqual(self.ask("GET", f"v1/crawls/{crawl['id']}").json["first_url"], "http://127.0.0.1:9/packed")

    def test_the_forms_of_the_page_do_the_same(self):
        one = self.add("http://127.0.0.1:9/form")["id"]
        done = self.site.post("/do/pauseCrawl", [("id", one), ("why", "by form"), ("back", f"/crawl/{one}")])
        self.assertEqual((done.status, done.headers["Location"]), (303, f"/crawl/{one}"))
        self.assertIn("by form", self.ask("GET", f"v1/why?of={one}").json["reason"])
        made = self.site.post(
            "/do/addCrawl", {"text": "http://127.0.0.1:9/f1\nhttp://127.0.0.1:9/f2", "tags": "x, y", "max_depth": "1"}
        )
        self.assertEqual(made.status, 303)
        crawl = self.ask("GET", "v1" + made.headers["Location"].replace("/crawl/", "/crawls/")).json
        self.assertEqual((crawl["tags"], crawl["max_depth"]), (["x", "y"], 1))
        for path, fields, status in (
            ("/do/addCrawl", {"text": "nonsense"}, 422),
            ("/do/addCrawl", {"text": "http://a.example/", "max_depth": "x"}, 400),
            ("/do/pauseCrawl", {}, 400),
            ("/do/listCrawls", {"id": one}, 404),
            ("/do/nothing", {"id": one}, 404),
        ):
            answer = self.site.post(path, fields)
            self.assertEqual(
                (answer.status, answer.headers["Content-Type"]), (status, "text/html; charset=utf-8"), path
            )
        reader = {"Authorization": f"Bearer {self.reader}"}
        self.assertEqual(self.site.post("/do/pauseCrawl", {"id": one}, headers=reader).status, 403)
        cross = {"Authorization": "", "Origin": "http://evil.example"}
        self.assertEqual(self.site.post("/do/pauseCrawl", {"id": one}, headers=cross).status, 403)

    def test_events_come_by_themselves(self):
        one = self.add("http://127.0.0.1:9/watched")["id"]
        events = self.stream(f"/api/v1/events/stream?crawl={one}&after=0")
        first = [next(events) for _ in range(2)]
        self.assertEqual({event for event, _, _ in first}, {"change", "progress"})
        self.ask("POST", f"v1/crawls/{one}/pause", {"why": "seen"})
        last = None
        for event, data, number in events:
            if event == "change":
                self.assertEqual(data["crawl_id"], one)
                last = number or last
            if event == "progress" and data["status"] == "paused":
                break
        self.ask("POST", f"v1/crawls/{one}/resume")
        # One that comes back gets what it has missed, and nothing twice.
        for event, data, number in self.stream(f"/api/v1/events/stream?crawl={one}", **{"Last-Event-ID": last}):
            if event == "change":
                self.assertGreater(int(number), int(last))
                break
        self.problem("GET", f"v1/events/stream?crawl={NEVER}", status=404, kind="not_found")
        pages = self.stream(f"/live?at=/crawl/{one}")
        event, data, _ = next(pages)
        self.assertEqual((event, set(data["sections"])), ("sections", {"crawl", "acts", "shown", "gallery"}))
        self.ask("POST", f"v1/crawls/{one}/cancel")
        self.assertNotEqual(next(pages)[1]["digests"]["crawl"], data["digests"]["crawl"])

    def test_the_examples_of_the_document_run(self):
        text = (ROOT / "deploy/api.md").read_text()
        script = "set -euo pipefail\n" + "".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))
        done = subprocess.run(
            ["bash", "-c", script],
            env={
                **self.site.place.environment,
                "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}",
                "HOLDFAST": f"http://127.0.0.1:{self.site.port}",
            },
            cwd=self.site.place.path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_document_is_valid(self):
        text = self.ask("GET", "openapi.json").text
        file = self.site.place.path / "openapi.json"
        file.write_text(text)
        done = subprocess.run(
            [tools() / "openapi-spec-validator", "--schema", "3.1", file], capture_output=True, text=True, timeout=120
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        paths = json.loads(text)["paths"]
        self.assertGreater(sum(map(len, paths.values())), 50)

    def test_a_client_that_tries_everything_finds_nothing_undocumented(self):
        site = Site(self, "--set", "serve.guest=none", token="operator")  # of which it removes what it finds
        self.addCleanup(site.close)
        command = [
            tools() / "schemathesis",
            "run",
            f"http://127.0.0.1:{site.port}/api/openapi.json",
            "--url",
            f"http://127.0.0.1:{site.port}",
            "-H",
            f"Authorization: Bearer {site.token}",
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
            "negative_data_rejection,unsupported_method",
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            REQUESTS,
            "--generation-deterministic",
            "--exclude-operation-id",
            "watchEvents",  # does not end
            "--no-color",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=800, cwd=site.place.path)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])


class Strange(Shared):
    """Every field, parameter and path of the document, and the forms of the same operations."""

    # What makes a call complete, where the field alone does not.
    FIXED = {"addCrawl": {"text": "http://127.0.0.1:9/x"}, "addSchedule": {"text": "http://127.0.0.1:9/x"}}
    VALUES = {**VALUES, "NUL": NUL}

    @classmethod
    def setUpClass(cls):
        cls.owner = cls("run_nothing")
        cls.site = Site(cls.owner, "--set", "serve.changes_per_minute=1000000", token="operator")
        cls.document = json.loads(cls.site.get("/api/openapi.json").text)

    def operations(self):
        for path, methods in self.document["paths"].items():
            for method, one in methods.items():
                yield "/api" + path.removeprefix("/api"), method.upper(), one

    def strange(self, path, **options):
        answer = self.site.get(path, **options)
        self.assertLess(answer.status, 500, answer.text[:1000])
        self.assertIsNone(answer.headers["X-Injected"])
        self.assertNotRegex(answer.text, "[\x00-\x08\x0b\x0c\x0e-\x1f]")
        if answer.status >= 400:
            self.assertLess(len(answer.text), 8000, "what was given is repeated at length")
        return answer

    @staticmethod
    def parts(fields):
        """A form of several parts, which can have any bytes."""
        part = b'--mark\r\nContent-Disposition: form-data;name="%s"\r\n\r\n%s\r\n'
        body = b"".join(part % (name.encode(), value) for name, value in fields) + b"--mark--\r\n"
        return {"method": "POST", "body": body, "headers": {"Content-Type": "multipart/form-data; boundary=mark"}}

    def test_every_field(self):
        crawl = self.ask("GET", "v1/crawls").json["items"][0]["id"]
        json_type = {"Content-Type": "application/json"}
        tried = 0
        for path, method, one in self.operations():
            if method == "GET":
                continue
            name = one["operationId"]
            content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
            fields = content.get("schema", {}).get("properties", {})
            fixed = {**{k: "daily" for k in content.get("schema", {}).get("required", [])}, **self.FIXED.get(name, {})}
            which = crawl if "/crawls/" in path else "work"
            for field in [*fields, "id", "back"]:
                for title, value in some_of(self.VALUES.items(), 10):
                    with self.subTest(name, field=field, value=title):
                        form = {"id": which, **fixed, field: value}
                        given = [(k, v if isinstance(v, bytes) else v.encode()) for k, v in form.items()]
                        self.strange("/do/" + name, **self.parts(given))
                        tried += 1
                        if field not in fields:
                            continue
                        raw = b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
                        for text in (json.dumps(value.decode("utf-8", "surrogateescape")).encode(), raw, value or b"7"):
                            members = [
                                b'"%s":%s' % (k.encode(), json.dumps(v).encode())
                                for k, v in fixed.items()
                                if k != field
                            ]
                            body = b"{" + b",".join([*members, b'"%s":%s' % (field.encode(), text)]) + b"}"
                            self.strange(path.replace("{id}", which), method=method, body=body, headers=json_type)
        self.assertGreater(tried, 500 if FULL else 100)

    def test_every_parameter_and_path(self):
        pages = [
            "/",
            "/crawls",
            "/search",
            "/add",
            "/schedules",
            "/personas",
            "/workers",
            "/hosts",
            "/failures",
            "/events",
        ]
        asked = [(page, ["q", "before", "limit", "sort"]) for page in [*pages, "/cdx", "/live.json", "/sign-in"]]
        asked += [("/live.json", ["at"]), ("/cdx", ["url", "output", "filter", "fl"]), ("/sign-in", ["next", "link"])]
        for path, method, one in self.operations():
            if method == "GET" and one["operationId"] != "watchEvents":
                names = [p["name"] for p in one.get("parameters", []) if p["in"] == "query"]
                asked.append((path.replace("{id}", NEVER), names))
        for path, names in asked:
            for name in names:
                for title, value in some_of(self.VALUES.items(), 8):
                    escaped = urllib.parse.quote(value[:20_000])
                    with self.subTest(path, parameter=name, value=title):
                        self.strange(f"{path}?{name}={escaped}")
        for path, method, one in self.operations():
            if "{id}" in path:
                for title, value in some_of(self.VALUES.items(), 8):
                    with self.subTest(path, method=method, value=title):
                        self.strange(path.replace("{id}", urllib.parse.quote(value[:20_000], safe="")), method=method)

    def test_two_thousand_of_each(self):
        for fields in (
            [("text", b"http://127.0.0.1:9/x")] + [("tags", b"t%d" % n) for n in range(2000)],
            [("file", b"http://127.0.0.1:9/x%d" % n) for n in range(2000)],
            [("field%d" % n, b"") for n in range(2000)],
            [("id", NEVER.encode()) for n in range(2000)],
        ):
            for operation in ("addCrawl", "pauseCrawl", "editCrawl"):
                with self.subTest(operation, fields=fields[-1][0]):
                    self.strange("/do/" + operation, **self.parts(fields))
                    self.assertLess(self.site.post("/do/" + operation, fields).status, 500)
        for name in ("X-%d", "Cookie", "X-Forwarded-For", "Authorization", "If-None-Match"):
            lines = "".join(f"{name.replace('%d', str(n))}: {n}\r\n" for n in range(2000))
            head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{self.site.port}\r\n{lines}\r\n"
            with self.subTest(name):
                self.assertRegex(self.site.raw(head.encode()), rb"^HTTP/1.1 (200|4\d\d) ")
        self.strange("/search?" + "&".join(f"q{n}=x" for n in range(2000)))
        self.strange("/api/v1/search?" + "&".join(f"q{n}=x" for n in range(2000)))
        self.assertEqual(self.site.get("/healthz").status, 200)


class Faults(Asking):
    """A server of its own for each test."""

    def test_who_sends_wrong_tokens_has_to_wait(self):
        self.site = Site(self, "--set", "serve.guest=none", token="operator")
        self.addCleanup(self.site.close)
        self.ask("GET", "v1/status")
        told = []
        while not told or told[-1].status == 401:
            told.append(self.site.get("/api/v1/status", headers={"Authorization": f"Bearer {len(told)}"}))
        self.assertGreaterEqual(len(told), 20)
        self.assertEqual((told[-1].status, json.loads(told[-1].text)["status"]), (429, 429))
        self.assertGreater(int(told[-1].headers["Retry-After"]), 0)
        self.assertEqual(self.site.post("/sign-in", {"token": "x"}, headers={"Authorization": ""}).status, 429)
        self.ask("GET", "v1/status")  # a token that was valid
        entered = self.site.post("/sign-in", {"token": self.site.token}, headers={"Authorization": ""})
        self.assertEqual(entered.status, 303)

    def test_changes_are_bounded(self):
        self.site = Site(self, "--set", "serve.guest=none", "--set", "serve.changes_per_minute=3", token="operator")
        self.addCleanup(self.site.close)
        for _ in range(3):
            self.ask("POST", "v1/resume")
        told = self.problem("POST", "v1/resume", None, 429, "temporary")
        self.assertIn("try again in", told["detail"])
        self.assertGreater(int(self.site.post("/do/resumeAll", {}).headers["Retry-After"]), 0)
        self.ask("GET", "v1/status")

    def test_a_killed_server_costs_a_client_no_event(self):
        self.site = site = Site(self, token="operator")
        one = self.add("http://127.0.0.1:9/kill")["id"]
        seen = []

        def read(events, last):
            for event, data, number in events:
                if event == "change":
                    seen.append(int(number))
                    if last in (data["event"], data["to_state"]):
                        return

        read(self.stream(f"/api/v1/events/stream?crawl={one}&after=0"), "add")
        site.process.kill()
        site.place.finish(site.process)
        # What happens while there is no server.
        for verb in ("pause", "resume"):
            site.place.run(verb, one)
        site.process = site.place.start("serve", env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"})
        site.port = int(re.search(r"^Open http://.*:(\d+)/", site.process.stdout.readline()).group(1))
        self.addCleanup(site.close)
        again = self.stream(f"/api/v1/events/stream?crawl={one}", **{"Last-Event-ID": str(seen[-1])})
        read(again, "resume")
        self.ask("POST", f"v1/crawls/{one}/cancel")
        read(again, "sealed")
        every = [event["id"] for event in self.ask("GET", f"v1/events?crawl={one}&limit=1000").json["items"]]
        self.assertEqual(seen, every[: len(seen)], "each once, in order")
        self.assertEqual(len(seen), 4)

    def test_a_dead_database_is_a_problem_and_streams_go_on_after_it(self):
        self.site = site = Site(self, token="operator")
        self.addCleanup(site.close)
        one = self.add("http://127.0.0.1:9/dead")["id"]
        stream = self.stream(f"/api/v1/events/stream?crawl={one}&after=0")
        self.assertEqual(next(stream)[0], "change")
        server = site.place.server_pid()
        os.kill(server, signal.SIGINT)
        until("the server is gone", lambda: site.place.server_pid() is None)
        self.problem("GET", "v1/status", None, 503, "temporary")
        self.problem("POST", "v1/resume", None, 503, "temporary")
        for path, status in (("/", 503), ("/crawls", 503), ("/readyz", 503), ("/healthz", 200)):
            self.assertEqual(site.get(path).status, status, path)
        self.assertEqual(site.place.run("pause", one, "--why", "afterwards").code, 0)  # starts it again
        for event, data, _ in stream:
            if event == "change" and data["event"] == "pause":
                break
        else:
            self.fail("the stream has ended")
        self.ask("GET", "v1/status")


if __name__ == "__main__":
    import unittest

    unittest.main()
