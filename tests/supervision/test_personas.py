"""Personas: cookies, storage, logins and headers that a crawl signs in with, through a real browser on a site that
shows its page only to the signed in; what a page changes is kept; and nothing of it can be read where it must not be."""

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import tarfile
import unittest
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

from harness.wait import until
from harness.web import LocalSite
from worker import WorkerCase

OK, USAGE, REFUSED, CONFIGURATION = 0, 64, 65, 78
BUILT_IN = Path(__file__).resolve().parents[2] / "deploy/plugins"
HAS_BROWSER = any(
    shutil.which(name) for name in ("/usr/lib/chromium/chromium-headless-shell", "chromium", "google-chrome")
)
# What a hook of another plugin may try with the crawl's browser: all that could tell it cookies or storage.
ASKS_BROWSER = """python3 - >asks.txt 2>&1 <<'END'
import json, os, socket
browser = socket.socket(socket.AF_UNIX)
os.chdir(os.environ["CRAWL_DIR"] + "/browser")
browser.settimeout(20)
browser.connect("browser.sock")
rest, last = b"", 0
def ask(method, session=None, **parameters):
    global rest, last
    last += 1
    message = {"id": last, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
    browser.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\\0")
    while True:
        while b"\\0" not in rest:
            rest += browser.recv(65536)
        text, _, rest = rest.partition(b"\\0")
        answer = json.loads(text)
        if answer.get("id") == last:
            print(method, json.dumps(answer), flush=True)
            return answer.get("result", {})
for one in ask("Target.getTargets").get("targetInfos", []):
    ask("Storage.getCookies", browserContextId=one.get("browserContextId"))
ask("Storage.getCookies")
target = json.load(open(os.environ["SNAP_DIR"] + "/browser/page.json"))["target"]
session = ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
ask("Network.getAllCookies", session)
ask("Storage.getCookies", session)
ask("Runtime.evaluate", session, expression="JSON.stringify(localStorage)", returnByValue=True)
ask("Fetch.enable", session)
context = ask("Target.createBrowserContext", disposeOnDetach=True)["browserContextId"]
own = ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
own = ask("Target.attachToTarget", targetId=own, flatten=True)["sessionId"]
ask("Target.attachToTarget", own, targetId=target, flatten=True)
ask("Network.getAllCookies", own)
ask("DOM.getDocument", session)
END
"""
SECRETS = {
    "cookie": "seeded-cookie-1f2e3d",
    "fresh": "seeded-fresh-9a8b7c",
    "local": "seeded-local-5d6e7f",
    "indexed": "seeded-indexed-aa11bb",
    "password": "seeded-password-cc22dd",
    "header": "seeded-header-ee33ff",
}
PAGE = """<!doctype html><title>Members</title><p id=out>waiting</p><script>
(async () => {
  const opened = await new Promise((yes, no) => {
    const opening = indexedDB.open('auth');
    opening.onsuccess = () => yes(opening.result);
    opening.onerror = () => no(opening.error);
  });
  const token = [...opened.objectStoreNames].length === 0 ? '' : await new Promise(yes => {
    const got = opened.transaction('tokens').objectStore('tokens').get('main');
    got.onsuccess = () => yes(got.result ? got.result.token + ' ' + got.result.at.getUTCFullYear() : '');
  });
  const answer = await fetch('/told', {method: 'POST', body: JSON.stringify(
    {local: localStorage.getItem('token'), indexed: token, agent: navigator.userAgent, language: navigator.language})});
  localStorage.setItem('seen', 'yes');
  document.getElementById('out').textContent = await answer.text();
})();
</script>"""


class Site(LocalSite):
    """Pages for those with the cookie; /basic asks for a password. Each page gives a new cookie."""

    def __init__(self):
        site = self
        self.told, self.seen = [], []

        class Handler(BaseHTTPRequestHandler):
            def answer(self, status, body, **headers):
                self.send_response(status)
                for name, value in {"Content_Type": "text/html", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def do_GET(self):
                cookies = self.headers.get("Cookie", "")
                site.seen.append((self.path, cookies, self.headers.get("X-Member"), self.headers.get("Authorization")))
                if self.path == "/basic":
                    wanted = "Basic " + base64.b64encode(f"me:{SECRETS['password']}".encode()).decode()
                    if self.headers.get("Authorization") != wanted:
                        return self.answer(401, "who?", WWW_Authenticate='Basic realm="members"')
                    return self.answer(200, "<title>Basic</title><p>inside")
                if not any(SECRETS[one] in cookies for one in ("cookie", "fresh")):
                    return self.answer(403, "<title>Log in</title>")
                self.answer(200, PAGE, Set_Cookie=f"session={SECRETS['fresh']}; HttpOnly; Path=/")

            def do_POST(self):
                site.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.answer(200, "welcome, member")

            def log_message(self, *_):
                pass

        super().__init__(Handler)

    def state(self):
        value = {"o": [{"k": "token", "v": SECRETS["indexed"]}, {"k": "at", "v": {"d": "2031-01-01T00:00:00.000Z"}}]}
        store = {
            "name": "tokens",
            "autoIncrement": False,
            "indexes": [],
            "records": [{"key": "main", "valueEncoded": {**value, "id": 1}}],
        }
        cookie = {"name": "session", "value": SECRETS["cookie"], "domain": "127.0.0.1", "path": "/", "expires": -1}
        return {
            "cookies": [{**cookie, "httpOnly": True, "secure": False, "sameSite": "Lax"}],
            "origins": [
                {
                    "origin": self.url,
                    "localStorage": [{"name": "token", "value": SECRETS["local"]}],
                    "indexedDB": [{"name": "auth", "version": 3, "stores": [store]}],
                }
            ],
            "httpCredentials": [{"origin": self.url, "username": "me", "password": SECRETS["password"]}],
            "headers": [{"origin": self.url, "name": "X-Member", "value": SECRETS["header"]}],
        }


class Personas(WorkerCase):
    def persona_place(self, **settings):
        home = self.worker_place(**settings)
        home.environment["HOLDFAST_PLUGINS_PATH"] = f"{home.plugins}:{BUILT_IN}"
        return home

    def imported(self, home, name, content, *arguments, file="state"):
        path = home.path / file
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        result = home.run("persona", "import", name, path, *arguments)
        path.unlink()
        return result

    def sealed(self, home, count):
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [[str(count)]], 120)

    def seen_in(self, *texts):
        return [name for name, secret in SECRETS.items() for text in texts if secret.encode() in text]

    @unittest.skipUnless(HAS_BROWSER, "no browser")
    def test_a_page_for_the_signed_in(self):
        site = Site()
        self.addCleanup(site.close)
        home = self.persona_place(HOOK_SANDBOX="auto")
        home.hook(
            "nosy",
            "on_Snapshot__60_nosy.sh",
            'env >env.txt; ls -R "$PERSONAS_DIR" "$DATA_DIR" "$CRAWL_DIR/.." >ls.txt 2>&1; '
            'grep -rs seeded- "$CRAWL_DIR" "$PERSONAS_DIR" "$DATA_DIR" /proc/*/environ /proc/*/cmdline >found.txt; true',
        )
        home.hook("asks", "on_Snapshot__61_asks.sh", ASKS_BROWSER)
        result = self.imported(home, "press", site.state())
        self.assertEqual(result.code, OK, str(result))
        self.assertEqual(
            result.records[0] | {"left_out": 0},
            {
                "type": "Persona",
                "name": "press",
                "version": 1,
                "cookies": 1,
                "origins": 1,
                "left_out": 0,
            },
        )
        options = ("--option", "USER_AGENT=Mozilla/5.0 (persona)", "--option", "LANG=de_DE.UTF-8")
        self.assertEqual(home.run("persona", "set", "press", "--host", "127.0.0.1", *options).code, OK)
        home.work()
        home.holdfast("add", site.url + "/page", "--bg", "-p", "browser,dom,nosy,asks")
        self.sealed(home, 1)
        (attempt,) = home.attempts()
        self.assertEqual(home.sql("select outcome from holdfast.snapshot_sealed"), [["succeeded"]], attempt)
        self.assertIn("welcome, member", (attempt / "dom/output.html").read_text())
        (told,) = site.told
        self.assertEqual((told["local"], told["indexed"]), (SECRETS["local"], SECRETS["indexed"] + " 2031"))
        self.assertEqual((told["agent"], told["language"]), ("Mozilla/5.0 (persona)", "de-DE"))
        page = next(one for one in site.seen if one[0] == "/page")
        self.assertEqual(page[2], SECRETS["header"])
        # What the page changed is kept, for the next page too.
        until("it is kept", lambda: home.sql("select version from holdfast.persona") == [["2"]])
        state = json.loads(home.run("persona", "export", "press").out)
        (cookie,) = state["cookies"]
        self.assertEqual((cookie["value"], cookie["httpOnly"]), (SECRETS["fresh"], True))
        (origin,) = state["origins"]
        self.assertEqual(
            {one["name"]: one["value"] for one in origin["localStorage"]}, {"token": SECRETS["local"], "seen": "yes"}
        )
        self.assertEqual(origin["indexedDB"], site.state()["origins"][0]["indexedDB"])
        self.assertEqual(state["httpCredentials"], site.state()["httpCredentials"])
        home.run("add", site.url + "/basic", "--bg", "-p", "browser,dom")
        self.sealed(home, 2)
        self.assertEqual(home.sql("select outcome from holdfast.snapshot_sealed"), [["succeeded"]] * 2)
        # A plugin that was not allowed has nothing of it, and nothing lies about.
        nosy = attempt / "nosy"
        self.assertEqual(self.seen_in(*(file.read_bytes() for file in nosy.iterdir())), [])
        self.assertEqual((nosy / "found.txt").read_text(), "")
        asked = (attempt / "asks/asks.txt").read_text().splitlines()
        refused = [line.split()[0] for line in asked if "it is not for this hook" in line]
        self.assertEqual(
            refused,
            ["Target.getTargets", "Storage.getCookies", "Network.getAllCookies", "Storage.getCookies"]
            + ["Runtime.evaluate", "Fetch.enable", "Target.attachToTarget"],
            "\n".join(asked),
        )
        self.assertTrue(asked[-1].startswith("DOM.getDocument") and "root" in asked[-1], asked[-1])
        self.assertEqual(self.seen_in("\n".join(asked[:-1]).encode()), [])
        home.leave()
        left = [file for file in home.data.rglob("*") if file.is_file() and "archive" not in file.parts]
        self.assertEqual(self.seen_in(*(file.read_bytes() for file in left), home.log.read_bytes()), [])

    @unittest.skipUnless(HAS_BROWSER, "no browser")
    def test_tokens_that_a_page_renews(self):
        forms = {  # how the site answers, and what the page does with it
            "named": ({"access_token": "?", "user": {"name": "anna"}}, ""),
            "pair": ({"access": "?", "refresh": "?"}, ""),
            "session": ({"data": [{"sessionId": "?"}]}, ""),
            "jwt": ({"data": "eyJhbGciOiJIUzI1NiJ9.?.c2lnbmF0dXJl"}, ""),
            "stored": ("?", "localStorage.setItem('t', text)"),
            "nested": ("?", "localStorage.setItem('all', JSON.stringify({user: 1, state: {t: text}}))"),
            "header": ("?", "await fetch('/used', {headers: {Authorization: 'Bearer ' + text}})"),
            "own header": (
                "?",
                "await fetch('/used', {method: 'POST', headers: {'X-CSRF-Token': text}}).catch(() => 0)",
            ),
            "worker": (
                "?",
                "await new Promise(yes => new Worker(URL.createObjectURL(new Blob([`fetch('${location.origin}/used', "
                "{headers: {Authorization: 'Bearer ${text}'}}).then(() => postMessage(1))`]))).onmessage = yes)",
            ),
            "parameter": ("?", "await fetch('/used?access_token=' + text)"),
            "cookie": ("?", "document.cookie = 'sid=' + text + '; path=/'"),
            "indexed": (
                "?",
                "const db = await new Promise(yes => { const o = indexedDB.open('n', 1); o.onupgradeneeded = () => "
                "o.result.createObjectStore('s'); o.onsuccess = () => yes(o.result); });"
                "await new Promise(yes => { const t = db.transaction('s', 'readwrite'); t.objectStore('s').put(text, 'k'); "
                "t.oncomplete = yes; })",
            ),
        }
        secret = {form: base64.b64encode(hashlib.sha256(form.encode()).digest())[:32].decode() for form in forms}
        used = []
        secret = {form: value.replace("/", "7").replace("+", "8") for form, value in secret.items()}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                used.append(self.path)
                script = "".join(
                    f"try {{ const text = await (await fetch('/renew/{form}', {{method: 'POST'}})).text(); {work}; "
                    "await fetch('/used?by=' + text.match(/[A-Za-z0-9.]{32,}/)[0]); } catch {}\n"
                    for form, (_, work) in forms.items()
                )
                self.answer(f"<title>In</title><p>Kittiwakes nest.<script>(async () => {{ {script} }})()</script>")

            def do_POST(self):
                form = unquote(self.path.rpartition("/")[2])
                given = forms.get(form, [""])[0]
                text = given if isinstance(given, str) else json.dumps(given)
                self.answer(
                    text.replace("?", secret.get(form, "")), "text/plain" if given == text else "application/json"
                )

            def answer(self, text, content_type="text/html"):
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        site = LocalSite(Handler)
        self.addCleanup(site.close)
        home = self.persona_place()
        cookie = {"name": "session", "value": SECRETS["cookie"], "domain": "127.0.0.1", "path": "/", "expires": -1}
        self.assertEqual(self.imported(home, "press", {"cookies": [cookie], "origins": []}).code, OK)
        self.assertEqual(home.run("persona", "set", "press", "--host", "127.0.0.1").code, OK)
        home.work()
        home.holdfast("add", site.url + "/page", "--bg", "-p", "browser,dom,text")
        self.sealed(home, 1)
        (attempt,) = home.attempts()
        record = gzip.decompress((attempt / "browser/page.warc.gz").read_bytes())
        self.assertEqual({form for form, value in secret.items() if not any(value in url for url in used)}, set())
        self.assertIn(b"Kittiwakes nest.", record)
        found = {form for form, value in secret.items() if value.encode() in record}
        self.assertEqual(found, set())
        others = b"".join(file.read_bytes() for file in attempt.rglob("*") if file.is_file())
        others += json.dumps(home.sql("select * from holdfast.v_snapshot, holdfast.v_result")).encode()
        self.assertEqual({form for form, value in secret.items() if value.encode() in others}, set())

    @unittest.skipUnless(HAS_BROWSER, "no browser")
    def test_what_may_show_a_secret_is_left_out(self):
        token = SECRETS["local"]
        log = gzip.compress(f"Kittiwakes {token}".encode())
        pages = {
            "shown": f"<p>Your key: {token}",
            "typed": f"<p>Your key: <input readonly value='{token}'>",
            "hidden": f"<p>Kittiwakes <input type=hidden value='{token}'>",
            "packed": "<p>Kittiwakes <script>fetch('/log.gz').then(answer => answer.blob())</script>",
        }

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = log if self.path == "/log.gz" else pages.get(self.path[1:], "").encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/gzip" if body is log else "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        site = LocalSite(Handler)
        self.addCleanup(site.close)
        home = self.persona_place()
        state = {"cookies": [], "origins": [{"origin": site.url, "localStorage": [{"name": "token", "value": token}]}]}
        self.assertEqual(self.imported(home, "press", state).code, OK)
        self.assertEqual(home.run("persona", "set", "press", "--host", "127.0.0.1").code, OK)
        home.work()
        home.holdfast("add", *(f"{site.url}/{page}" for page in pages), "--bg", "-p", "browser,screenshot,pdf,dom,text")
        self.sealed(home, len(pages))
        shot = "screenshot/screenshot.png"
        for page in pages:
            with self.subTest(page):
                ((snapshot, directory, outcome, reason),) = home.sql(
                    "select e.snapshot_id, e.directory, e.outcome, e.reason from holdfast.snapshot_sealed e "
                    f"join holdfast.snapshot s on s.id = e.snapshot_id where s.url = '{site.url}/{page}'"
                )
                attempt = home.data / "archive" / directory
                pictures = [name for name in (shot, "pdf/output.pdf") if (attempt / name).exists()]
                told = re.findall("left out, because it may show a secret of the persona: (.*)", reason)
                self.assertEqual(outcome, "succeeded")
                if page in ("shown", "typed"):
                    self.assertEqual(pictures, [])
                    self.assertIn(shot, told[0])
                else:
                    self.assertEqual(len(pictures), 2)
                    self.assertEqual(told, [f"{site.url}/log.gz"] if page == "packed" else [])
                self.assertIn("".join(told), home.run("why", snapshot).out)
        self.assertEqual(home.run("export", "--all", "--format", "warc", "-o", home.path / "out").code, OK)
        records = b"".join(gzip.decompress(file.read_bytes()) for file in (home.path / "out").glob("*.warc.gz"))
        self.assertIn(b"/log.gz", records)
        self.assertNotIn(log[10:-8], records)
        self.assertNotIn(token.encode(), records)

    def test_dumps_do_not_show_it(self):
        home = self.persona_place()
        site = Site()
        self.addCleanup(site.close)
        self.assertEqual(self.imported(home, "press", site.state()).code, OK)
        key = home.data / "persona.key"
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        shown = home.run("persona", "show", "press").out + home.run("persona", "list").out
        self.assertEqual(self.seen_in(shown.encode()), [])
        home.work()
        address = ["-h", home.data / "postgres-run", "-U", "holdfast", "-d", "holdfast"]
        user = home.identity or {}
        dump = subprocess.run(["pg_dump", *address], capture_output=True, cwd="/", timeout=120, **user)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        self.assertIn(b"COPY holdfast.persona", dump.stdout)
        self.assertEqual(self.seen_in(dump.stdout), [])
        secrets = [text.strip().encode() for text in key.read_text().splitlines() if not text.startswith("#")]
        self.assertFalse([one for one in secrets if one in dump.stdout])
        for role in ("reader", "operator"):
            for statement in ("select state from holdfast.persona", "select * from holdfast.persona_load('press')"):
                with self.assertRaisesRegex(AssertionError, "permission denied"):
                    home.sql(f"set role holdfast_{role}; {statement}")
            rows = home.sql(f"set role holdfast_{role}; select * from holdfast.v_persona")
            self.assertEqual(rows[0][0], "press")
            self.assertEqual(self.seen_in(str(rows).encode()), [])

    def test_keys(self):
        home = self.persona_place()
        self.assertEqual(self.imported(home, "press", {"cookies": []}).code, OK)
        key = home.data / "persona.key"
        old = [line for line in key.read_text().splitlines() if not line.startswith("#")][0]
        new = home.path / "new.key"
        new.write_text("f" * 64 + "\n" + old + "\n")
        wrong = home.path / "wrong.key"
        wrong.write_text("e" * 64 + "\n")
        bad = home.path / "bad.key"
        bad.write_text("hello-secret\n")
        for key in (new, wrong, bad):
            key.chmod(0o600)

        def export(file):
            return home.run("persona", "export", "press", env={"HOLDFAST_PERSONA_KEY_FILE": str(file)})

        self.check_error(export(wrong), CONFIGURATION, "no key here opens persona", "sign in again")
        result = export(bad)
        self.check_error(result, CONFIGURATION, f"{bad}:1: not a key")
        self.assertNotIn("hello", result.err)
        self.check_error(export(home.path / "none.key"), CONFIGURATION, "none.key", "cannot be read")
        # A worker with another key leaves the crawl to others and says why.
        home.environment["HOLDFAST_PERSONA_KEY_FILE"] = str(wrong)
        home.work()
        self.assertEqual(home.run("add", "https://site.test/", "--bg", "--persona", "press").code, OK)
        why = "select reason from holdfast.why((select id from holdfast.v_crawl))"
        until("it says so", lambda: "of persona" in home.sql(why)[0][0])
        self.assertRegex(home.sql(why)[0][0], r'no running worker can take .*: no key [0-9a-f]{8} of persona "press"')
        self.check_error(home.run("persona", "remove", "press"), REFUSED, "is used by 1 open crawl")
        home.leave()
        # The new key first, the old one behind it.
        home.environment["HOLDFAST_PERSONA_KEY_FILE"] = str(new)
        rotated = home.run("persona", "rotate")
        self.assertEqual((rotated.code, [one["changed"] for one in rotated.records]), (OK, [True]), str(rotated))
        self.assertEqual([one["changed"] for one in home.run("persona", "rotate").records], [False])
        new.write_text("f" * 64 + "\n")
        self.assertEqual(home.run("persona", "export", "press").code, OK)

    def test_imports(self):
        home = self.persona_place()
        jar = "# Netscape HTTP Cookie File\n.a.test\tTRUE\t/\tTRUE\t0\tname\tvalue\n#HttpOnly_b.test\tFALSE\t/x\tFALSE\t4102444800\tn\tv\n"
        result = self.imported(home, "jar", jar)
        self.assertEqual((result.records[0]["cookies"], result.records[0]["left_out"]), (2, []), str(result))
        self.assertEqual(home.run("persona", "export", "jar", "--cookies").out, jar)
        self.assertEqual(self.imported(home, "jar", jar, "--host", "www.a.test").records[0]["cookies"], 1)
        self.assertEqual(home.run("persona", "show", "jar").records[0]["hosts"], ["www.a.test"])
        odd = jar + "c.test\tFALSE\t/\tFALSE\t0\tn\todd\x01bytes\n"
        self.assertEqual(
            self.imported(home, "jar", odd).records[0]["left_out"], ["a cookie of c.test that no browser takes"]
        )
        for content, words in (
            ("name=hush\n", ("state:1", "not a line")),
            ('{"cookies": "hush"}', ("state", '"cookies": type must be array')),
            ("{hush", ("not a JSON object",)),
        ):
            result = self.imported(home, "jar", content)
            self.check_error(result, REFUSED, *words)
            self.assertNotIn("hush", result.err)
        self.check_error(home.run("persona", "import", "jar", home.path / "none"), REFUSED, "none")
        self.check_error(home.run("persona", "import", "jar", home.plugins), REFUSED, "not a browser profile")
        large = {"origins": [{"origin": "https://a.test", "localStorage": [{"name": "n", "value": "v" * 10_000_000}]}]}
        self.assertEqual(self.imported(home, "large", large).code, OK)
        self.assertEqual(
            json.loads(home.run("persona", "export", "large").out)["origins"][0]["localStorage"][0],
            large["origins"][0]["localStorage"][0],
        )
        # Profiles.
        firefox = home.path / "firefox"
        firefox.mkdir()
        with sqlite3.connect(firefox / "cookies.sqlite") as database:
            database.execute(
                "create table moz_cookies (originAttributes, name, value, host, path, expiry, isSecure, isHttpOnly, sameSite)"
            )
            database.execute("insert into moz_cookies values ('', 'n', 'v', '.f.test', '/', 4102444800, 1, 1, 1)")
            database.execute(
                "insert into moz_cookies values ('^userContextId=1', 'o', 'v', '.f.test', '/', 1, 1, 1, 1)"
            )
        result = home.run("persona", "import", "firefox", firefox)
        self.assertEqual(result.records[0]["cookies"], 1, str(result))
        chromium = home.path / "profile/Default"
        chromium.mkdir(parents=True)
        with sqlite3.connect(chromium / "Cookies") as database:
            database.execute(
                "create table cookies (host_key, name, value, encrypted_value, path, expires_utc, is_secure, is_httponly, samesite, has_expires)"
            )
            for row in (("plain", "v", b""), ("closed", "", b"v11" + bytes(16)), ("sealed", "", encrypted("hidden"))):
                database.execute("insert into cookies values ('.g.test', ?, ?, ?, '/', 0, 0, 0, -1, 0)", row)
        archive = home.path / "profile.tar.gz"
        with tarfile.open(archive, "w:gz") as file:
            file.add(home.path / "profile", ".")
        for path in (home.path / "profile", archive):
            result = home.run("persona", "import", "chromium", path)
            self.assertEqual(result.records[0]["cookies"], 2, str(result))
            self.assertIn(
                "1 cookie of .g.test, encrypted with a key of the desktop's keyring", result.records[0]["left_out"]
            )
            values = {
                one["name"]: one["value"]
                for one in json.loads(home.run("persona", "export", "chromium").out)["cookies"]
            }
            self.assertEqual(values, {"plain": "v", "sealed": "hidden"})
        box = home.path / "box"
        (box / "chrome_user_data").mkdir(parents=True)
        shutil.copytree(chromium, box / "chrome_user_data/Default")
        (box / "cookies.txt").write_text(jar)
        self.assertEqual(home.run("persona", "import", "box", box).records[0]["cookies"], 4)

    def test_what_is_made_to_do_harm_is_not_imported(self):
        home = self.persona_place()

        def refused(path, *words):
            with self.subTest(path):
                self.check_error(home.run("persona", "import", "jar", path), REFUSED, *words)

        def database(name, file, *statements):
            (home.path / name).mkdir()
            with sqlite3.connect(home.path / name / file) as connection:
                for statement in statements:
                    connection.execute(statement)
            return home.path / name

        deep = '{"origins": [{"origin": "https://a.test", "indexedDB": %s}]}' % ("[" * 500_000 + "]" * 500_000)
        (home.path / "deep").write_text(deep)
        refused(home.path / "deep", "nested too deeply")
        many = "".join(f"a.test\tFALSE\t/\tFALSE\t0\tn{number}\tv\n" for number in range(300_000))
        (home.path / "many").write_text(many)
        refused(home.path / "many", "more than 10000 cookies")
        refused("/dev/zero", "larger than 64 MB")
        columns = "originAttributes, name, value, host, path, expiry, isSecure, isHttpOnly, sameSite"
        endless = (
            "with recursive r(n) as (select 1 union all select n + 1 from r) "
            "select '', n, 'v', 'a.test', '/', 0, 0, 0, 0 from r"
        )
        refused(database("view", "cookies.sqlite", f"create view moz_cookies ({columns}) as {endless}"), "read")
        table = f"create table moz_cookies ({columns})"
        row = "insert into moz_cookies values ('', 'n', zeroblob(30000000), 'a.test', '/', 0, 0, 0, 0)"
        refused(database("blob", "cookies.sqlite", table, row), "read")
        sparse = database("sparse", "cookies.sqlite", table)
        with open(sparse / "cookies.sqlite", "r+b") as file:
            file.truncate(1 << 36)
        refused(sparse, "larger than 64 MB")
        pipe = home.path / "pipe"
        pipe.mkdir()
        os.mkfifo(pipe / "Cookies")
        (pipe / "cookies.txt").symlink_to("/dev/zero")
        refused(pipe, "not a browser profile")
        head = tarfile.TarInfo("large")
        head.size = 2 << 30
        zeros = gzip.compress(bytes(16 << 20))
        (home.path / "bomb.tar.gz").write_bytes(gzip.compress(head.tobuf()) + zeros * 128)
        refused(home.path / "bomb.tar.gz", "unpacked")
        odd = database(
            "odd",
            "Cookies",
            "create table cookies (host_key, name, value, encrypted_value, path, expires_utc, is_secure, is_httponly, "
            "samesite, has_expires)",
            "insert into cookies values (x'ff1b', 'n', '', x'763131', '/', 0, 0, 0, -1, 0)",
        )
        result = home.holdfast("persona", "import", "jar", odd)
        self.assertIn("encrypted with a key of the desktop's keyring", result.records[0]["left_out"][0])


def encrypted(text):
    """As Chromium on Linux writes a value without a keyring."""
    key = hashlib.pbkdf2_hmac("sha1", b"peanuts", b"saltysalt", 1, 16).hex()
    done = subprocess.run(
        ["openssl", "enc", "-aes-128-cbc", "-K", key, "-iv", "20" * 16],
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    return b"v10" + done.stdout


if __name__ == "__main__":
    unittest.main()
