"""The end of a persona's session: noticed on the page that shows it, its crawls wait, and go on with the next session;
and nothing of either session stands in the archive, whatever the site repeats of it."""

import base64
import gzip
import json
import shutil
import subprocess
import unittest
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

from harness.wait import until
from harness.web import LocalSite
from worker import WorkerCase

OK, REFUSED = 0, 65
BUILT_IN = Path(__file__).resolve().parents[2] / "deploy/plugins"
HAS_BROWSER = any(
    shutil.which(name) for name in ("/usr/lib/chromium/chromium-headless-shell", "chromium", "google-chrome")
)
FIRST, SECOND, FRESH = "seeded+first/0001=q", "seeded+second/0002=q", "seeded-fresh-0003-cookie"
BEARER, PASSWORD = "seeded.bearer.0004.token", "seeded password 5!"
SECRETS = (FIRST, SECOND, FRESH, BEARER, PASSWORD)


# A plugin that may have what the persona has, and says it in every way that a hook can.
LEAKS = r"""
t=$(python3 -c 'import json, os
print(json.load(open(os.environ["AUTH_STORAGE_FILE"]))["origins"][0]["localStorage"][0]["value"])')
echo "of stderr $t" >&2
echo "of stdout $t"
mkdir -p "dir-$t"
echo "in a file $t" >"dir-$t/page?t=$t.html"
cp "dir-$t/page?t=$t.html" "dir-$t/page?t=xxxxxx.xxxxxx.0000.xxxxx.html"
ln -s "dir-$t/page?t=$t.html" link
printf '{"type": "Snapshot", "url": "http://127.0.0.1:9/out?t=%s", "title": "%s", "tags": "%s"}\n' "$t" "$t" "$t"
printf '{"type": "Tag", "name": "tag %s"}\n' "$t"
printf '{"type": "ArchiveResult", "status": "succeeded", "output_str": "dir-%s/page", "output_json": ["%s"]}\n' "$t" "$t"
"""


def forms_of(secret):
    plain = secret.encode()
    yield from {plain, quote(secret, safe="").encode(), json.dumps(secret).strip('"').replace("/", r"\/").encode()}
    yield base64.b64encode(b"me:" + plain)[4:-4]


class Site(LocalSite):
    """Shows its pages to those whose session is open, and repeats what it knows of them; leads all others to /login."""

    def __init__(self):
        site = self
        self.open, self.seen, self.bearer = {FIRST}, [], []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, body="", **headers):
                self.send_response(status)
                for name, value in {"Content_Type": "text/html", "Content_Length": len(body), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                self.wfile.write(body.encode())

            def do_GET(self):
                cookies = self.headers.get("Cookie", "")
                session = next((one for one in site.open if f"session={one}" in cookies), None)
                if self.path.startswith("/api"):
                    site.bearer.append(self.headers.get("Authorization"))
                    return self.answer(200, json.dumps({"token": BEARER}), Content_Type="application/json")
                if self.path.startswith("/login"):
                    return self.answer(200, "<title>Sign in</title><form><input type=password></form>")
                if not session:
                    return self.answer(302, Location="/login")
                site.seen.append(self.path)
                told = json.dumps(session).replace("/", r"\/")
                self.answer(
                    200,
                    f"""<!doctype html><title>Members</title><p>Inside {session}<a href="/out?s={quote(session, safe="")}">Log
                    out</a><input type=password value="typed-{PASSWORD}"><input type=password><p id=t>{PASSWORD}</p><script>
                    window.session = {told}; window.fresh = "{FRESH}";
                    fetch('/api?t=' + localStorage.token, {{headers: {{Authorization: 'Bearer ' + localStorage.token}}}})
                      .then(answer => answer.json()).then(answer => console.log(answer.token));
                    fetch('/told', {{method: 'POST', body: 'user=me&password=' + encodeURIComponent(t.textContent)}});
                    </script>""",
                    Set_Cookie=f"fresh={FRESH}; HttpOnly",
                )

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(200, "{}")

            def log_message(self, *_):
                pass

        super().__init__(Handler)

    def state(self, session):
        cookie = {"name": "session", "value": session, "domain": "127.0.0.1", "path": "/", "httpOnly": True}
        return {
            "cookies": [{**cookie, "expires": -1, "secure": False}],
            "origins": [{"origin": self.url, "localStorage": [{"name": "token", "value": BEARER}]}],
            "httpCredentials": [{"origin": self.url, "username": "me", "password": PASSWORD}],
        }


class SignedOut(WorkerCase):
    def setUp(self):
        self.home = self.worker_place()
        self.home.environment["HOLDFAST_PLUGINS_PATH"] = f"{self.home.plugins}:{BUILT_IN}"
        self.site = Site()
        self.addCleanup(self.site.close)

    def sign_in(self, session):
        path = self.home.path / "state"
        path.write_text(json.dumps(self.site.state(session)))
        result = self.home.run("persona", "import", "press", path)
        path.unlink()
        self.assertEqual(result.code, OK, str(result))

    def add(self, *paths):
        urls = [self.site.url + path for path in paths]
        result = self.home.run("add", *urls, "--bg", "--persona", "press", "-p", "browser,dom,text,headers,outlinks")
        self.assertEqual(result.code, OK, str(result))

    def sealed(self, count):
        until(
            "they are sealed",
            lambda: self.home.sql("select count(*) from holdfast.snapshot_sealed") == [[str(count)]],
            180,
        )

    def archived(self):
        for file in (self.home.data / "archive").rglob("*"):
            if file.is_file():
                bytes_ = file.read_bytes()
                yield file, gzip.decompress(bytes_) if file.suffix == ".gz" else bytes_

    def found(self, *texts):
        return [(secret, form) for secret in SECRETS for form in forms_of(secret) for text in texts if form in text]

    @unittest.skipUnless(HAS_BROWSER, "no browser")
    def test_noticed_waited_for_and_gone_on(self):
        home, site = self.home, self.site
        self.sign_in(FIRST)
        home.work()
        home.sql("select holdfast.webhook_set('ops', 'http://127.0.0.1:9/', '{persona.signed_out}', 'me')")
        self.add("/a", "/b")
        self.sealed(2)
        site.open.clear()
        self.add("/c", "/d", "/e")
        out = "select signed_out_reason from holdfast.v_persona"
        until("it is noticed", lambda: home.sql(out) == [["the page asks for a login"]], 120)
        until(
            "none is held",
            lambda: home.sql("select count(*) from holdfast.snapshot_queue where owner_id is not null") == [["0"]],
        )
        why = "select reason from holdfast.why((select id from holdfast.v_crawl where status <> 'sealed'))"
        self.assertRegex(home.sql(why)[0][0], r'persona "press" is signed out since ')
        self.sealed(2)
        self.assertEqual(home.sql("select distinct attempts from holdfast.snapshot_queue"), [["0"]])
        site.open.add(SECOND)
        self.sign_in(SECOND)
        self.sealed(5)
        self.assertEqual(home.sql(out), [[""]])
        checked = home.run(
            "persona", "set", "press", "--check", f"redirect={site.url}/login", "--check", "text=Log out"
        )
        self.assertEqual(checked.code, OK, str(checked))
        site.open.clear()
        self.add("/f")
        until("it is noticed", lambda: home.sql(out) == [["the page led to the login"]], 120)
        site.open.add(FIRST)
        self.sign_in(FIRST)
        self.sealed(6)
        self.assertEqual(home.sql("select distinct outcome from holdfast.snapshot_sealed"), [["succeeded"]])
        self.assertEqual(sorted(path for path in site.seen if len(path) == 2), ["/a", "/b", "/c", "/d", "/e", "/f"])
        told = "select count(*) from holdfast.delivery", "select count(*) from holdfast.event where event = 'sign_out'"
        self.assertEqual([home.sql(statement) for statement in told], [[["2"]], [["2"]]])
        # Without a page to capture, the schedule notices it.
        checked = home.run(
            "persona", "set", "press", "--check-every", "hourly", "--check", f"text=Log out @{site.url}/check"
        )
        self.assertEqual(checked.code, OK, str(checked))
        site.open.clear()
        home.sql("select holdfast.schedule_run(id, holdfast.new_uuid()) from holdfast.schedule")
        until("it is noticed", lambda: "Log out" in home.sql(out)[0][0], 120)
        self.assertEqual(set(site.bearer), {"Bearer " + BEARER})
        home.leave()
        # Nothing of both sessions is kept, and what is kept is whole.
        files = dict(self.archived())
        self.assertTrue([file for file in files if file.name.endswith(".warc.gz")])
        for file, content in files.items():
            self.assertEqual(self.found(content), [], str(file))
        warc = b"".join(content for file, content in files.items() if file.name.endswith(".warc.gz"))
        for kept in (
            b"Inside xxxxxx+xxxxx/0000=x",
            b"Inside xxxxxx+xxxxxx/0000=x",
            b"xxxxxx.xxxxxx.0000.xxxxx",
            b"Set-Cookie: fresh=xxxxxx",
        ):
            self.assertIn(kept, warc)
        self.assertEqual(self.found(home.log.read_bytes()), [])
        self.assertEqual(home.run("verify", "--all").code, OK)

    def test_what_a_plugin_says_that_has_it(self):
        home = self.home
        home.environment["HOLDFAST_PERSONA_PLUGINS"] = "browser,leaks,fails"
        for name, end in (("leaks", "exit 0"), ("fails", "exit 1")):
            home.hook(name, "on_Snapshot__50_leaks.sh", LEAKS + end)
        self.sign_in(FIRST)
        home.work()
        added = home.run("add", self.site.url + "/a", "--bg", "--depth", "1", "--persona", "press", "-p", "leaks,fails")
        self.assertEqual(added.code, OK, str(added))
        self.sealed(2)  # with the page that the hook has found
        dump = subprocess.run(
            ["pg_dump", "-h", home.data / "postgres-run", "-U", "holdfast", "-d", "holdfast"],
            capture_output=True,
            cwd="/",
            timeout=120,
            **(home.identity or {}),
        )
        self.assertEqual(dump.returncode, 0, dump.stderr)
        self.assertIn(b"tag xxxxxx.xxxxxx.0000.xxxxx", dump.stdout)
        self.assertEqual(self.found(dump.stdout), [])
        home.leave()
        files = dict(self.archived())
        self.assertEqual(self.found(*files.values(), *(str(file).encode() for file in files)), [])
        self.assertEqual(self.found(home.log.read_bytes()), [])
        link = next((home.data / "archive").rglob("leaks/link"))
        self.assertEqual(link.read_text(), "in a file xxxxxx.xxxxxx.0000.xxxxx\n")
        names = sorted(file.name for file in files if "page?t=" in file.name and "leaks" in file.parts)
        self.assertEqual(names[0], "page?t=xxxxxx.xxxxxx.0000.xxxxx.html")
        self.assertEqual(home.run("verify", "--all").code, OK)

    def test_what_is_no_check(self):
        for check, words in (
            ("text", 'it has no "="'),
            ("colour=red", "no such kind of check"),
            ("not-cookie=sid", "no such kind of check"),
            ("text=", "it has no value"),
            ("redirect=login", "must be a URL"),
        ):
            self.check_error(self.home.run("persona", "set", "press", "--check", check), REFUSED, words)


if __name__ == "__main__":
    unittest.main()
