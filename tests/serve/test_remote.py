"""Commands with a server in place of a database: the same words, the same output, the same exit codes.

Two copies of one collection get the same command lines, one through its database, the other through its server, and
what each prints is compared byte for byte. The lines come from the tables of lists and operations: a new row is tried
by itself, or fails here for want of a line.
"""

import json
import re
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.case import CONFIGURATION, OK, REFUSED, UNAVAILABLE, USAGE, Case
from harness.web import LocalSite

TEMPORARY = 75
ID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( UTC|\+00:00|\+00|Z)?"

# Of lists about what changes by itself: processes, the caller, times until something.
MOVING = {"crawls", "stuck", "workers", "runners", "throughput", "partitions", "periods", "maintenance"}
# Not in the API, because their rows are for the owner of the database.
HIDDEN = {"accounts", "tokens"}

# The command line of an operation whose name does not tell it.
LINES = {
    "addCrawl": ["add", "--only-new", "--tag", "a,b", "http://127.0.0.1:9/good-2"],
    "addSchedule": ["watch", "add", "--label", "new", "http://127.0.0.1:9/good", "--every", "2h"],
    "changeCrawl": ["edit", "CRAWL", "--tag", "x", "--notes", "n"],
    "changeSnapshot": ["edit", "SNAPSHOT", "--title", "a title"],
    "removeCrawl": ["remove", "--yes", "SEALED"],
    "removeSnapshot": ["remove", "--yes", "SNAPSHOT"],
    "scopeCrawl": ["exclude", "ads.example.net", "CRAWL"],
    "retry": ["retry", "CRAWL", "--failed"],
    "changeWatch": ["watch", "edit", "news", "--every", "3h"],
    "runSchedule": ["schedule", "run-now", "news"],
    "drainWorker": ["drain", "WORKER"],
    "setHost": ["host", "set", "example.org", "--delay", "5s"],
    "setWebhook": ["webhook", "add", "ops", "http://127.0.0.1:9/hook"],
    "setPersona": ["persona", "set", "work", "--option", "PAGE_TIMEOUT=9"],
    "signIn": ["persona", "sign-in", "work", "http://127.0.0.1:9/login"],
    "cancelSignIn": None,  # of the page, which shows the browser
    "addShelf": ["shelf", "add", "winter", "--tag", "a tag"],
    "changeShelf": ["shelf", "edit", "reading", "--description", "two"],
    "shelve": ["shelf", "put", "reading", "CRAWL", "--place", "first"],
    "unshelve": ["shelf", "take", "reading", "SNAPSHOT"],
    "share": None,  # each link is another one
    "addToken": None,  # of clients and the page; `holdfast token` needs the database
    "revokeToken": None,
    "revokeShare": ["share", "revoke", "ffffffff"],
    "importPage": None,  # of browsers that send a page; `holdfast import page` needs the database
    "pauseAll": ["pause", "--all", "--why", "a test"],
    "resumeAll": ["resume", "--all"],
    "setLogLevel": ["log-level", "debug"],
}
STEERED = {
    "Crawl": ["OPEN"],
    "Snapshot": ["QUEUED"],
    "Host": ["--host", "example.org"],
    "Worker": ["--worker", "WORKER"],
}


def line_of(operation):
    if operation in LINES:
        return LINES[operation]
    verb, kind = re.fullmatch(r"([a-z]+)([A-Z]\w+)", operation).groups()
    if kind in STEERED and verb in ("pause", "resume", "cancel"):
        return [verb, *STEERED[kind], *(["--yes"] if verb == "cancel" else [])]
    name = {"Host": "example.org", "Webhook": "ops", "Persona": "work", "Schedule": "news", "Shelf": "reading"}.get(
        kind
    )
    assert name, f"no command line tries the operation {operation}: give it one in LINES"
    return [kind.lower(), verb, name]


class Remote(Case):
    def setUp(self):
        self.here = self.place()
        self.here.hook(
            "page", "on_Snapshot__10_page.sh", "echo page >page.txt; case $name in bad) echo no >&2; exit 3 ;; esac"
        )
        blocks = '{"source": "browser", "title": "One"}\n{"at": "p", "text": "This is page $name"}'
        self.here.hook("text", "on_Snapshot__56_text.sh", f"cat >blocks.jsonl <<END\n{blocks}\nEND")
        add = ["http://127.0.0.1:9/good-1", "http://127.0.0.1:9/bad", "http://127.0.0.1:9/good-2"]
        self.here.holdfast("add", "--label", 'first, "of" all', "--tag", "a tag", *add, expect=None)
        self.here.holdfast("add", "--bg", "--label", "open", "http://127.0.0.1:9/later?x=<b>&y='")
        self.here.holdfast("add", "--bg", "--label", "moving", "http://127.0.0.1:9/moving")
        self.here.holdfast("watch", "add", "--label", "news", "--every", "1h", "http://127.0.0.1:9/news")
        self.here.holdfast("host", "set", "example.org", "--parallel", "1")
        self.here.holdfast("webhook", "add", "ops", "http://127.0.0.1:9/hook")
        self.here.holdfast("shelf", "put", "reading", "http://127.0.0.1:9/good-1")
        self.here.holdfast("persona", "set", "work", "--host", "example.org")
        ids = {row["label"]: row["id"] for row in self.here.lines("list", "crawls")}
        rows = {row["url"]: row["id"] for row in self.here.lines("list", "snapshots")}
        workers = [row["id"] for row in self.here.lines("list", "workers")]
        self.ids = {
            "CRAWL": ids['first, "of" all'], "SEALED": ids['first, "of" all'], "OPEN": ids["open"],
            "SNAPSHOT": rows["http://127.0.0.1:9/bad"], "WORKER": workers[0],
            "QUEUED": ids["moving"], "A": rows["http://127.0.0.1:9/good-1"], "B": rows["http://127.0.0.1:9/good-2"],
        }  # fmt: skip
        self.there = self.copied() if "operations" in self._testMethodName else self.here
        self.token = self.there.lines("token", "add", "anna", "--role", "operator")[0]["token"]
        self.process = self.there.start("serve", env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"})
        self.addCleanup(self.end)
        self.url = self.process.stdout.readline().split()[1].replace("localhost", "127.0.0.1").rstrip("/")
        self.away = self.collection()
        shutil.rmtree(self.away.plugins)
        self.away.plugins.symlink_to(self.here.plugins)
        secret = self.away.path / "token"
        secret.write_text(self.token + "\n")
        secret.chmod(0o600)
        self.away.environment |= {"HOLDFAST_SERVER": self.url, "HOLDFAST_TOKEN_FILE": str(secret)}

    def end(self):
        self.process.terminate()
        self.assertEqual(self.there.finish(self.process).code, OK)

    def copied(self):
        """Another collection, with the same rows and ids."""
        self.here.until("the database ends", lambda: not (self.here.data / "postgres/postmaster.pid").exists())
        there = self.collection()
        subprocess.run(["cp", "-a", f"{self.here.path}/.", there.path], check=True)
        return there

    def operations(self):
        document = json.loads(self.away_get("/api/openapi.json"))
        for path, methods in document["paths"].items():
            for method, what in methods.items():
                if method != "get" and not re.search(r"/v1/(cli|core|auth)\b", path):
                    yield what["operationId"]

    def away_get(self, path):
        return subprocess.check_output(
            ["curl", "-sSf", "-H", f"Authorization: Bearer {self.token}", self.url + path], text=True
        )

    def both(self, *line, changes=False):
        """The same result from both, but for places of files, and of what changes, new ids and times."""
        line = [self.ids.get(word, word) for word in line]

        def told(result):
            text = f"{result.code}\n{result.out}\n{result.err}"
            for place in (self.here.path, self.there.path, self.away.path):
                text = text.replace(str(place), "PLACE")
            text = text.replace(self.url, "URL")
            text = re.sub(r"(PLACE/data/archive|URL)/\S*?(index\.html|(?=[\s\",]))", "PAGE", text)
            if changes:
                known = set(self.ids.values())
                text = re.sub(ID, lambda found: found[0] if found[0] in known else "ID", text)
                text = re.sub(TIME, "TIME", text)
                text = re.sub(r"-?\b\d\d:\d\d:\d\d(\.\d+)?\b|\b\d+(\.\d+)? (ms|s|min)\b", "AGE", text)
                text = re.sub(" +", " ", text)
                text = re.sub(r"http://127.0.0.1:8118/persona/\S*?(?=[\s\",])", "PAGE", text)
                text = re.sub("token anna|root", "WHO", text)
                text = text.replace(" go on: holdfast run\n", "")  # where the database is
            return text

        here, away = told(self.here.run(*line)), told(self.away.run(*line))
        self.assertNotIn(self.token, away)
        self.assertEqual(away, here, line)
        return here

    def test_lists_are_the_same(self):
        names = [
            one.partition("\t")[0]
            for one in self.here.run("completion", "words", "--", "holdfast", "list", "").out.split("\n")
        ]
        names = [name for name in names if name and not name.startswith("-")]
        self.assertIn("snapshots", names)
        for name in names:
            if name in HIDDEN:
                self.check_error(self.away.run("list", name), USAGE, "where the database is")
                continue
            for shape in ("--table", "--json", "--csv"):
                with self.subTest(name, shape=shape):
                    self.both("list", name, shape, changes=name in MOVING)
        self.both("list", "snapshots", "--table", "--columns", "id,url,nothing")
        self.both("list", "snapshots", "--json", "--crawl", "CRAWL", "--status", "sealed", "-n", "1")

    def test_what_is_shown_is_the_same(self):
        for line in (
            ["show", "CRAWL"], ["show", "SNAPSHOT"], ["show", "SNAPSHOT", "--table"], ["show", "WORKER", "--table"],
            ["show", "nothing"], ["show", "ffffffff"], ["search", "good"], ["search", "good", "--table"],
            ["why", "OPEN"], ["why", "SNAPSHOT", "--table"], ["why", "5a5a5a5a"], ["why", "news"],
            ["events", "-n", "7"], ["events", "-n", "3", "--table"], ["events", "--crawl", "CRAWL", "-n", "2"],
            ["logs", "CRAWL"], ["logs", "SNAPSHOT", "--table"], ["logs", "SNAPSHOT", "--plugin", "page"],
            ["shelf", "show", "reading"], ["shelf", "show", "reading", "--table"], ["shelf", "show", "none"],
            ["edit", "CRAWL"], ["scope", "CRAWL", "--table"], ["watch", "show", "news"], ["persona", "show", "work"],
            *(["diff", "A", "B", shape] for shape in ("--json", "--table")), ["diff", "B", "A", "--json"],
            ["diff", "A"], ["diff", "CRAWL"], ["diff", "5a5a5a5a", "A"],
            *(["export", "-o", "-", "--format", form, *what] for form in ("bookmarks", "json") for what in (
                ["--all"], ["CRAWL", "SNAPSHOT"], ["--tag", "a tag"], ["--host", "none"], ["--shelf", "reading"],
                ["--all", "--since", "1h"], ["--all", "--until", "1h"], ["OPEN"],
            )),
        ):  # fmt: skip
            with self.subTest(" ".join(line)):
                self.both(*line)
        here, away = (json.loads(one.run("status").out) for one in (self.here, self.away))
        self.assertEqual(set(here), set(away))
        self.assertEqual(here["snapshots"], away["snapshots"])
        self.assertIn(self.url, self.away.run("status", "--table").out)

    def test_operations_do_the_same(self):
        tried = list(self.operations())
        self.assertIn("pauseCrawl", tried)
        order = ("add", "change", "set", "scope", "pause", "resume", "retry", "run", "test", "sign", "drain", "cancel")
        rank = {verb: number for number, verb in enumerate(order)}
        tried.sort(key=lambda name: rank.get(re.match(r"[a-z]+", name)[0], len(order)))
        for operation in tried:
            if line := line_of(operation):
                for shape in ("--json", "--table"):  # the second time, most has been done
                    with self.subTest(operation, shape=shape):
                        self.both(*line, shape, changes=True)
        for name in ("crawls", "hosts", "webhooks", "personas", "schedules"):
            rows = [[{key: row.get(key) for key in ("id", "name", "label", "status", "outcome", "tags", "notes")
                      if not (key == "id" and row.get(key) not in self.ids.values())}
                     for row in one.lines("list", name)] for one in (self.here, self.there)]  # fmt: skip
            self.assertEqual(rows[0], rows[1], name)

    def test_what_needs_the_database_says_so(self):
        needs = "this command needs the database, not a server"
        for line in (
            ["worker"], ["run"], ["runner"], ["migrate"], ["psql"], ["check"], ["verify", "--all"], ["adopt"], ["serve"],
            ["backup", "x"], ["token", "add", "x"], ["token", "revoke", "x"], ["search", "--rebuild"],
            ["export", "SNAPSHOT", "-o", "x.wacz"],
        ):  # fmt: skip
            line = [self.ids.get(word, word) for word in line]
            with self.subTest(" ".join(line)):
                self.check_error(self.away.run(*line), USAGE, needs, "HOLDFAST_SERVER")
        self.assertFalse(self.away.data.exists() and any(self.away.data.iterdir()), "nothing is made here")

    def test_files_and_streams_go_in(self):
        (self.away.path / "list.txt").write_text("http://127.0.0.1:9/from-a-file\nno url\n")
        done = self.away.run("add", "--bg", "list.txt", "--label", "by file")
        self.assertEqual((done.code, done.records[0]["seeds"], done.records[0]["left_out"]), (OK, 1, 1), str(done))
        done = self.away.run(
            "add", "-", given='{"url": "http://127.0.0.1:9/told", "title": "A title", "tags": ["a,b"]}\n'
        )
        self.assertEqual(done.code, OK, str(done))
        row = self.away.lines("list", "crawls", "--tag", "a,b", "-n", "1")
        self.assertEqual(row, [], "tags of a URL are its snapshot's")

    def test_wrong_servers_and_tokens(self):
        def run(url=None, token=None, *line, **environment):
            environment |= {"HOLDFAST_SERVER": url or self.url, "HOLDFAST_TOKEN_FILE": ""}
            if token:
                environment["HOLDFAST_TOKEN"] = token
            return self.away.run(*(line or ("list", "crawls")), env=environment)

        self.check_error(run(token="wrong"), CONFIGURATION, "does not accept the token", "HOLDFAST_TOKEN")
        reader = self.there.lines("token", "add", "bert")[0]["token"]
        self.assertEqual(run(None, reader).code, OK)
        self.check_error(run(None, reader, "pause", "--all"), REFUSED, "may only read")
        self.check_error(run("http://archive.example/", "secret"), CONFIGURATION, "not https", "ssh -L")
        self.check_error(run("http://u:p@127.0.0.1/", "secret"), CONFIGURATION, "not the URL of a server")
        self.check_error(run("http://127.0.0.1:1/"), UNAVAILABLE, "no answer from http://127.0.0.1:1")
        self.check_error(self.away.run("--set", "token=abc", "list"), USAGE, "HOLDFAST_TOKEN_FILE")
        secret = self.away.path / "token"
        secret.chmod(0o644)
        self.check_error(self.away.run("list"), CONFIGURATION, "token_file", "can be read by every user")

        class Strange(BaseHTTPRequestHandler):
            def do_GET(self):
                code = int(self.path.split("/")[1])
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", "http://127.0.0.1:1/")
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"<p>\n")

            def log_message(self, *_):
                pass

        strange = LocalSite(Strange)
        self.addCleanup(strange.close)
        for status, code in ((200, UNAVAILABLE), (302, UNAVAILABLE), (404, UNAVAILABLE), (502, TEMPORARY)):
            self.check_error(
                run(f"http://127.0.0.1:{strange.server.server_port}/{status}", "secret"), code, f"status {status}"
            )

    def test_a_certificate_is_checked(self):
        heard = []

        class Front(BaseHTTPRequestHandler):
            def do_GET(self):
                heard.append(self.headers["Authorization"])
                body = b'{"items": [], "cursor": null, "total": 0}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        key, certificate = self.away.path / "key.pem", self.away.path / "certificate.pem"
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
        subprocess.run([*make, *names], check=True, capture_output=True)
        server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        environment = {"HOLDFAST_SERVER": f"https://localhost:{server.server_port}"}
        done = self.away.run("list", "crawls", env=environment)
        self.check_error(done, UNAVAILABLE, "certificate")
        self.assertEqual(heard, [], "no request was sent")

    def test_the_token_is_in_no_log_and_no_command_line(self):
        done = self.away.run("list", "crawls", "-v")
        self.assertNotIn(self.token, done.out + done.err)
        self.assertEqual(next(row for row in self.away.lines("config") if row["key"] == "token")["value"], "(unset)")
