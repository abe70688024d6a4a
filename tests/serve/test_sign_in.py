"""Signing in by hand: a person in a real Chromium drives the live view of a browser on a worker, on a site of this
test."""

import base64
import contextlib
import ctypes
import gzip
import hashlib
import http.cookies
import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import unittest
import urllib.parse
from pathlib import Path

import chromium
from harness.apache import HAS_APACHE, Apache
from harness.full import only_in_full
from harness.machine import Machine, network_namespaces
from harness.postgres import Server
from harness.case import CONFIGURATION, REFUSED, Case
from harness.wait import free_port, until

ROOT = Path(__file__).resolve().parents[2]
PASSWORD, CODE, SESSION = "correct horse battery", "492817", "s3ss10n-of-anna"


def placed(*things):
    """HTML of things, each 200 x 30 and where the test can click: 20 pixels from the left, 40 below the one before."""
    style = "<style>input,button,select{width:200px;height:30px}</style>"
    return style + "".join(
        f'<div style="position:absolute;left:20px;top:{20 + 40 * i}px">{thing}</div>' for i, thing in enumerate(things)
    )


class Guarded(http.server.BaseHTTPRequestHandler):
    """A site with a login of two steps, a window of another provider, a photo to send, and a page for members."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def page(self, body, status=200, cookie=None, location=None):
        data = ("<!doctype html><meta charset=utf-8><title>" + self.path + "</title>" + body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data)))
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="The <b>staff</b>", charset="UTF-8"')
        if cookie:
            self.send_header("Set-Cookie", cookie)
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(data)

    def cookie(self, name):
        found = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get(name)
        return found and found.value

    def do_GET(self):
        seen = self.server.seen
        path = self.path.split("?")[0]
        if path.startswith("/staff"):
            login = base64.b64encode(f"anna:{PASSWORD}".encode()).decode()
            right = self.headers.get("Authorization") == "Basic " + login
            staff = "<h1>For staff</h1><script>fetch('/staff/more')</script>"
            self.page(staff if right else "no", 200 if right else 401)
            seen.append((path, right))
        elif path == "/elsewhere":
            self.page("", 302, location="http://127.0.0.2:4321/")
        elif path == "/login":
            fields = placed("<input name=user>", "<input name=password type=password>", "<button>Next</button>")
            self.page(f"<form method=post action=/login>{fields}</form>")
        elif path == "/second":
            code = "<input name=code autofocus ontouchend=\"fetch('/touched')\">"
            self.page(f"<form method=post action=/second>{placed(code, '<button>Next</button>')}</form>")
        elif path == "/welcome":
            self.page(
                placed(
                    "<button onclick=\"open('/provider','','width=400,height=300')\">Provider</button>",
                    "<form method=post action=/photo enctype=multipart/form-data id=f>"
                    "<input type=file name=photo onchange='f.submit()'></form>",
                    "<button onclick=\"fetch('/asked?'+confirm('Really?'))\">Ask</button>",
                    "<select onchange=\"fetch('/chosen?'+value)\"><option>one<option>two</select>",
                )
                + "<script>localStorage.token='kept-by-script';"
                "indexedDB.open('site',1).onupgradeneeded="
                "e=>e.target.result.createObjectStore('login').put({id:7},'anna')</script>"
            )
        elif path == "/provider":
            self.page(placed("<form method=post action=/provider><button>Allow</button></form>"))
        elif path == "/endless":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>endless</title><p>It never ends." + b" " * 4096)
            self.wfile.flush()
            self.server.over.wait(120)
        elif path == "/large":
            more = "<script>fetch('/had?' + (localStorage.large || '').length); localStorage.large = 'x'.repeat(5e6)</script>"
            self.page(placed("<button>Large</button>") + more, cookie='odd=caf\xe9"\\\t|; Path=/')
        elif path == "/private":
            if self.cookie("session") == SESSION and self.cookie("provider") == "yes":
                self.page("<h1>For members</h1>")
            else:
                self.page("", 302, location="/login")
        else:
            seen.append(self.path)
            self.page("")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        form = urllib.parse.parse_qs(body.decode("utf-8", "replace"))
        if self.path == "/login" and form == {"user": ["Ännä"], "password": [PASSWORD]}:
            self.page("", 302, "step=1; HttpOnly; Path=/", "/second")
        elif self.path == "/second" and form == {"code": [CODE]} and self.cookie("step") == "1":
            self.page("", 302, f"session={SESSION}; HttpOnly; Path=/; Max-Age=86400", "/welcome")
        elif self.path == "/provider":
            self.page("<script>close()</script>", 200, "provider=yes; HttpOnly; Path=/")
        elif self.path == "/photo":
            self.server.seen.append(body)
            self.page("", 302, location="/welcome")
        else:
            self.server.seen.append((self.path, form))
            self.page("wrong", 403)


class Live(chromium.Chromium):
    """A person in front of the view."""

    def window(self, title):
        """Waits until the view shows the page of this title, loaded and painted."""
        self.until(
            f"the view shows {title}",
            f"document.querySelector('[data-address]').textContent.endsWith({title!r}) && (() => {{"
            "const c = document.querySelector('canvas'); if (c.width < 320) return false;"
            "const d = new Uint32Array(c.getContext('2d').getImageData(0, 0, 240, 200).data.buffer);"
            "return d.some((one) => one !== d[0]) })()",
        )

    def touch_at(self, x, y, kind="mouse"):
        left, top = self.value(
            "(() => { const e = document.querySelector('.screen'); e.scrollIntoView(); "
            "const r = document.querySelector('canvas').getBoundingClientRect(); return [r.x, r.y] })()"
        )
        if kind == "touch":
            self.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": left + x, "y": top + y}])
            self.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
            return
        for name in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=name, x=left + x, y=top + y, button="left", clickCount=1)

    def log_in(self, user, password, button="ok"):
        self.until("a login is asked for", "document.querySelector('dialog').open")
        self.value(
            f"(f => {{ f.user.value = {user!r}; f.password.value = {password!r} }})"
            "(document.querySelector('dialog form').elements)"
        )
        self.press(f"dialog button[value='{button}']")

    def write(self, text):
        for letter in text:
            self.key(letter, letter)

    def press(self, selector):
        self.value(f"document.querySelector({selector!r}).click()")


class Wire:
    """A WebSocket by hand."""

    def __init__(self, front, path, token):
        where = urllib.parse.urlsplit(front)
        self.socket = socket.create_connection((where.hostname, where.port), timeout=60)
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        self.input = self.socket.makefile("rb")
        self.status = int(self.input.readline().split()[1])
        while self.input.readline().strip():
            pass
        self.messages = self.read_messages()

    def send(self, data, first=0x81, masked=True, length=None):
        size = len(data) if length is None else length
        mark = 0x80 if masked else 0
        long = 0 if size < 126 else 2 if size < 65536 else 8
        head = bytes([first, mark | (size if long == 0 else 126 if long == 2 else 127)])
        if long:
            head += size.to_bytes(long, "big")
        self.socket.sendall(head + (bytes(4) if masked else b"") + data)  # masked by zeros: as it is

    def say(self, **message):
        self.send(json.dumps(message).encode() + b"\0")

    def read_messages(self):
        """Until the other side ends it."""
        held = b""
        with contextlib.suppress(ConnectionError):
            while head := self.input.read(2):
                size = head[1] & 127
                if size > 125:
                    size = int.from_bytes(self.input.read(2 if size == 126 else 8), "big")
                data = self.input.read(size)
                if head[0] & 15 == 8:
                    return
                if head[0] & 15 < 3:
                    *whole, held = (held + data).split(b"\0")
                    yield from map(json.loads, whole)

    def do(self, method, parameters):
        self.say(type="do", method=method, parameters=parameters)

    def wait_for(self, kind):
        for message in self.messages:
            if message["type"] == "frame":
                self.do("Page.screencastFrameAck", {"sessionId": message["number"]})
            if message["type"] == kind:
                return message
        raise AssertionError(f"it has ended without {kind}")

    def await_end(self):
        for _ in self.messages:
            pass
        self.socket.close()


class SignInCase(Case):
    """A server, a worker with a browser, and people in front of it."""

    settings = {}
    site = Guarded

    def setUp(self):
        self.place = self.place()
        self.web = self.web_server()
        self.web.daemon_threads = True
        self.web.seen, self.web.over = [], threading.Event()
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.addCleanup(self.web.server_close)
        self.addCleanup(self.web.shutdown)
        self.addCleanup(self.web.over.set)
        self.address = f"http://127.0.0.1:{self.web.server_port}"
        del self.place.environment["HOLDFAST_HOOK_SANDBOX"]
        self.place.environment.update(self.settings)
        for name in ("browser", "title"):
            shutil.copytree(ROOT / "deploy/plugins" / name, self.place.plugins / name, dirs_exist_ok=True)
        self.server, self.front = self.serve()
        self.worker = self.start("worker")

    def web_server(self):
        return http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.site)

    def start(self, *arguments, **more):
        number = len(list(self.place.path.glob("*.log")))
        log = open(self.place.path / f"{arguments[0]}-{number}.log", "w+")
        process = self.place.start(*arguments, stderr=log, **more)
        self.addCleanup(log.close)
        self.addCleanup(self.place.finish, process)
        self.addCleanup(process.terminate)
        return process

    def serve(self):
        self.tokens = {
            name: self.place.run("token", "add", name, "--role", role).records[0]["token"]
            for name, role in (("anna", "operator"), ("bert", "operator"), ("rita", "reader"))
        }
        server = self.start("serve", env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"})
        port = re.search(r":(\d+)/", server.stdout.readline()).group(1)
        return server, f"http://127.0.0.1:{port}/"

    def person(self, name="anna", width=1280, height=900):
        browser = Live(width, height)
        self.addCleanup(browser.close)
        browser.open(self.front + "sign-in")
        browser.value(f"document.querySelector('#t').value = {self.tokens[name]!r}")
        browser.click("button")
        return browser

    def ask(self, browser, path="/login", persona="press"):
        browser.open(self.front + "personas")
        browser.value(
            f"(f => {{ f.id.value; f.elements.id.value = {persona!r}; f.url.value = {self.address + path!r} }})"
            "(document.querySelector('form[action=\"/do/signIn\"]'))"
        )
        browser.click("form[action='/do/signIn'] button")

    def browsers(self):
        return [pid for pid in self.place.hooks() if b"chrom" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    @staticmethod
    def fill_in_login(view):
        """Name and password, typed into the page that is shown, and sent."""
        view.touch_at(120, 35)
        view.ask("Input.insertText", text="Ännä")
        view.key("Tab")
        view.ask("Input.insertText", text=PASSWORD)
        view.key("Enter")

    def sign_ins(self):
        return self.place.run("psql", "-Atc", "select count(sign_in) from holdfast.v_persona").out.strip()

    def gone(self):
        until("the browser has ended", lambda: not self.place.hooks())

    def logs(self):
        return "".join(path.read_text() for path in self.place.path.glob("*.log"))

    def nothing_said(self, *secrets):
        """What the person typed is in no log, no row and no process."""
        everything = "select p::text from holdfast.persona p union all select e::text from holdfast.event e"
        dump = self.place.run("psql", "-c", everything).out
        logs = self.logs()
        started = b"".join(
            Path(f"/proc/{pid}/cmdline").read_bytes() for pid in self.place.own_programs() + self.place.hooks()
        ).decode("utf-8", "replace")
        for secret in secrets or (PASSWORD, CODE, SESSION):
            for where, text in (("rows", dump), ("logs", logs), ("processes", started)):
                self.assertNotIn(secret, text, where)


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class SignIn(SignInCase):
    def test_signed_in(self):
        view = self.person()
        self.ask(view)
        view.window("/login")
        view.screenshot("sign-in-login")
        view.touch_at(120, 35)
        view.write("Ä")
        view.ask("Input.insertText", text="nn")  # as an input method or a phone writes
        view.write("ä")
        view.key("Tab")
        view.write(PASSWORD)
        view.touch_at(120, 115)
        view.window("/second")
        view.touch_at(120, 35, "touch")
        until("the touch has arrived", lambda: "/touched" in self.web.seen)
        view.value(
            "document.querySelector('textarea').dispatchEvent(new ClipboardEvent('paste', {clipboardData: (() => {"
            f" const d = new DataTransfer(); d.setData('text/plain', '{CODE}'); return d }})(), cancelable: true}}))"
        )
        view.key("Enter")
        view.window("/welcome")
        view.screenshot("sign-in-welcome")
        view.touch_at(120, 35)
        view.window("/provider")
        self.assertFalse(view.value("document.querySelector('[data-windows]').hidden"), "there is a list of windows")
        view.screenshot("sign-in-windows")
        view.touch_at(120, 35)
        view.window("/welcome")
        view.touch_at(120, 75)
        view.until("a file is asked for", "document.querySelector('dialog').open")
        view.screenshot("sign-in-file")
        photo = self.place.path / "photo of me.jpg"
        photo.write_bytes(b"\xff\xd8 a photo")
        root = view.ask("DOM.getDocument")["root"]["nodeId"]
        node = view.ask("DOM.querySelector", nodeId=root, selector="[name=files]")
        view.ask("DOM.setFileInputFiles", nodeId=node["nodeId"], files=[str(photo)])
        view.press("dialog button[value=ok]")
        sent = lambda one: isinstance(one, bytes) and b"\xff\xd8 a photo" in one and b"photo of me.jpg" in one
        until("the site has the photo", lambda: any(map(sent, self.web.seen)))
        view.window("/welcome")
        view.touch_at(120, 115)
        view.until("the script's question is shown", "document.querySelector('#view-asks').textContent === 'Really?'")
        view.press("dialog button[value=ok]")
        until("it is answered", lambda: "/asked?true" in self.web.seen)
        view.touch_at(120, 155)
        view.key("ArrowDown")
        view.key("Enter")
        until("the choice is made", lambda: "/chosen?two" in self.web.seen)
        view.press("[data-do=done]")
        view.until("it is kept", "document.querySelector('[data-view]').dataset.over")
        view.until("the list is shown", "location.pathname === '/personas'")
        view.screenshot("sign-in-personas")
        # This test reads the picture, which the page does not.
        self.assertEqual([one for one in view.complaints if "readback" not in one], [])
        self.gone()
        state = json.loads(self.place.run("persona", "export", "press").out)
        cookies = {one["name"]: (one["value"], one["httpOnly"]) for one in state["cookies"]}
        self.assertEqual(cookies, {"step": ("1", True), "session": (SESSION, True), "provider": ("yes", True)})
        self.assertEqual(len(state["origins"]), 1)
        kept = state["origins"][0]
        self.assertEqual(kept["localStorage"], [{"name": "token", "value": "kept-by-script"}])
        self.assertEqual(kept["indexedDB"][0]["stores"][0]["records"], [{"key": "anna", "value": {"id": 7}}])
        self.captured_as_a_member()
        self.nothing_said()

    def test_what_a_server_asks_for_itself(self):
        asks = "document.querySelector('#view-asks').textContent"
        view = self.person()
        self.ask(view, "/staff")
        view.until("it asks", asks + f" === '{self.address} asks for a user and a password (The <b>staff</b>).'")
        view.screenshot("sign-in-password")
        view.log_in("anna", "wrong")
        view.until("it asks again", asks + ".startsWith('That was not accepted. ')")
        view.log_in("anna", PASSWORD)
        until("the page is there", lambda: ("/staff/more", True) in self.web.seen)
        self.assertEqual(self.web.seen.count(("/staff/more", False)), 0)
        view.press("[data-do=reload]")
        until("it is there again", lambda: self.web.seen.count(("/staff", True)) == 2)
        self.assertFalse(view.value("document.querySelector('dialog').open"))
        view.press("[data-do=done]")
        view.until("it is kept", "document.querySelector('[data-view]').dataset.over === 'kept'")
        self.gone()
        state = json.loads(self.place.run("persona", "export", "press").out)
        wanted = {"origin": self.address, "username": "anna", "password": PASSWORD}
        self.assertEqual(state["httpCredentials"], [wanted])
        done = self.place.run("add", "--wait", "--persona", "press", "-p", "browser,title", self.address + "/staff/2")
        self.assertIn('"title":"/staff/2"', self.place.run("show", done.records[0]["id"]).out)
        self.nothing_said()
        # Signed in to something else, it keeps the password; given up, the site's own page is shown.
        view.open(self.front + "personas")
        self.ask(view, "/staff")
        view.log_in("", "", "")
        view.window("/staff")
        view.press("[data-do=done]")
        view.until("it is kept", "document.querySelector('[data-view]').dataset.over === 'kept'")
        kept = json.loads(self.place.run("persona", "export", "press").out)
        self.assertEqual(kept["httpCredentials"], [wanted])

    @unittest.skipUnless(HAS_APACHE, "no Apache here")
    def test_basic_and_digest_of_apache(self):
        apache = Apache(PASSWORD)
        self.addCleanup(apache.close)
        self.address = apache.url
        for page in apache.pages(1, "p"):
            path = page.removeprefix(apache.url)
            kind = path.split("/")[1]
            view = self.person()
            self.ask(view, path, kind)
            view.log_in("me", PASSWORD)
            view.until("it is inside", f"document.querySelector('[data-address]').title === {path!r}")
            view.press("[data-do=done]")
            view.until("it is kept", "document.querySelector('[data-view]').dataset.over === 'kept'")
            self.gone()
            done = self.place.run("add", "--wait", "--persona", kind, "-p", "browser,title", page)
            self.assertIn(f'"title":"{path}"', self.place.run("show", done.records[0]["id"]).out)
        self.nothing_said()
        kept = [file.read_bytes() for file in self.place.data.glob("archive/**/*") if file.is_file()]
        kept = b"".join(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text for text in kept)
        digest = hashlib.md5(f"me:members:{PASSWORD}".encode()).hexdigest()
        for secret in (PASSWORD, base64.b64encode(f"me:{PASSWORD}".encode()).decode(), digest, "\nAuthorization:"):
            self.assertNotIn(secret.encode(), kept)
        # Another password is asked for now: that is noticed, and the pages wait.
        apache.set_password("another")
        pages = apache.pages(1, "q")
        for page, kind in zip(pages, ("basic", "digest")):
            self.place.run("add", "--bg", "--persona", kind, "-p", "browser,title", page)
        out = "select distinct signed_out_reason from holdfast.v_persona"
        noticed = lambda: self.place.run("psql", "-Atc", out).out.strip() == "the site answers HTTP 401"
        until("it is noticed", noticed, 120)

    def test_a_page_that_the_worker_does_not_fetch(self):
        view = self.person()
        self.ask(view, "/elsewhere")
        said = "The page is not fetched: port 4321 is not in hook.ports."
        view.until("it is said", f"document.querySelector('#view-state').textContent === {said!r}")

    def captured_as_a_member(self):
        # The sign-in has remembered its host. Without a persona, the form answers.
        for more, title in ((["--persona", "press"], "/private"), ([], "/private"), (["--persona", "none"], "/login")):
            done = self.place.holdfast("add", "--wait", *more, self.address + "/private")
            shown = self.place.run("show", done.records[0]["id"]).out
            self.assertIn(f'"title":"{title}"', shown)

    def test_only_one_person_of_those_who_may(self):
        anna, bert = self.person("anna"), self.person("bert")
        self.ask(anna)
        anna.window("/login")
        self.ask(bert)
        self.assertIn('token anna is signing in to the persona "press" since', bert.value("document.body.innerText"))
        bert.open(anna.value("location.href"))
        told = "document.querySelector('#view-state').textContent"
        bert.until("he is told", f"{told}.includes('token anna has opened this view')")
        told = self.place.run("persona", "sign-in", "press", self.address + "/login")
        self.check_error(told, REFUSED, "token anna is signing in")
        anna.window("/login")
        reader = self.person("rita")
        reader.open(anna.value("location.href"))
        self.assertIn("Only an operator may sign in", reader.value("document.body.innerText"))
        opened = (
            "new Promise(done => { const s = new WebSocket(location.origin.replace('http', 'ws') + '/view/'"
            " + location.pathname.split('/').pop()); s.onopen = () => done('opened');"
            " s.onerror = () => done('refused') })"
        )
        self.assertEqual(reader.value(opened), "refused")
        stranger = chromium.Chromium()
        self.addCleanup(stranger.close)
        stranger.open(self.address + "/other")
        path = anna.value("location.pathname")
        elsewhere = opened.replace("location.origin", repr(self.front[:-1])).replace("location.pathname", repr(path))
        self.assertEqual(stranger.value(elsewhere), "refused")
        anna.click("form[action='/do/cancelSignIn'] button")
        self.gone()
        self.ask(bert)
        bert.window("/login")

    @only_in_full
    def test_much_storage_an_odd_cookie_and_a_persona_that_is_removed(self):
        view = self.person()
        self.ask(view, "/large")
        view.window("/large")
        view.press("[data-do=done]")
        view.until("it is kept", "document.querySelector('[data-view]').dataset.over === 'kept'")
        self.gone()
        (origin,) = json.loads(self.place.run("persona", "export", "press").out)["origins"]
        self.assertEqual(origin["localStorage"], [{"name": "large", "value": "x" * 5_000_000}])
        done = self.place.run("add", "--wait", "--persona", "press", "-p", "browser,title", self.address + "/large")
        self.assertIn('"title":"/large"', self.place.run("show", done.records[0]["id"]).out)
        self.assertIn("/had?5000000", self.web.seen)
        view.open(self.front + "personas")
        self.ask(view, "/large", "short-lived")
        view.window("/large")
        self.assertEqual(self.place.run("persona", "remove", "short-lived").code, 0)
        view.press("[data-do=done]")
        told = 'Nothing was saved: the persona "short-lived" was removed meanwhile.'
        view.until("it is said", f"document.querySelector('#view-state').textContent === {told!r}")
        self.gone()

    @only_in_full
    def test_a_page_that_does_not_end_and_a_view_left_open(self):
        view = self.person()
        self.ask(view, "/endless")
        view.until("it loads", "document.querySelector('[data-address]').textContent.includes('/endless')")
        view.press("[data-do='Page.stopLoading']")
        view.window("/endless")
        page = view.value("location.href")
        view.open(page)  # loaded again: the view before has gone
        view.window("/endless")
        view.open("about:blank")
        until("the browser ends without a view", lambda: not self.place.hooks(), 150)
        until("the worker has said so", lambda: self.sign_ins() == "0")
        view.open(page)
        self.assertIn("There is no such sign-in", view.value("document.body.innerText"))

    def test_a_worker_that_stops_or_lacks_something(self):
        view = self.person()
        self.ask(view)
        view.window("/login")
        self.worker.terminate()
        view.until("it is said", "document.querySelector('#view-state').textContent.includes('its worker stops')")
        self.worker.wait(60)
        self.gone()
        self.ask(view)
        said = "document.querySelector('#view-state').textContent"
        view.until("it says what is missing", f"{said} === 'No worker runs: \"holdfast worker\" starts one.'")
        added = self.place.run("add", "--wait", self.address + "/other", "-p", "title")  # by a worker for it alone
        self.assertEqual(added.code, 0, str(added))
        state = self.place.run("psql", "-Atc", "select sign_in_state from holdfast.v_persona where name = 'press'").out
        self.assertEqual(state, "waiting for a worker\n")
        key = self.place.path / "no.key"
        key.write_text("not a key\n")
        key.chmod(0o600)
        self.worker = self.start("worker", env={"HOLDFAST_PERSONA_KEY_FILE": str(key)})
        view.until("it says what is missing", "document.querySelector('#view-state').textContent.includes('no.key')")
        self.another_worker("192.0.2.7:0")
        why = "its worker cannot listen at 192.0.2.7 port 0 (Cannot assign requested address)"
        view.until("it has ended", f"document.querySelector('#view-state').textContent.includes('{why}')")
        until("its worker says why", lambda: why in self.logs())
        self.assertIn(why, self.place.run("psql", "-Atc", "select sign_in_state from holdfast.v_persona").out)
        self.gone()
        named = self.place.run("worker", env={"HOLDFAST_WORKER_ADDRESS": "worker-1.example"})
        self.check_error(named, CONFIGURATION, "worker.address", "worker-1.example")
        port = free_port()
        with socket.create_server(("127.0.0.3", port)):
            self.another_worker(f"127.0.0.3:{port}")
            self.ask(view)
            said = f"127.0.0.3 port {port} (Address already in use)"
            view.until("it has ended", f"document.querySelector('#view-state').textContent.includes('{said}')")
            self.gone()
            view.open(self.front + "personas")
            self.assertIn(said, view.value("document.body.innerText"))
        self.ask(view)
        view.window("/login")
        address = self.place.run(
            "psql", "--role", "owner", "-Atc", "select host(address), port from holdfast.persona_sign_in"
        ).out
        self.assertEqual(address, f"127.0.0.3|{port}\n")
        other = self.person("bert")
        self.ask(other, persona="wiki")  # through the same port
        other.window("/login")
        other.click("form[action='/do/cancelSignIn'] button")
        view.click("form[action='/do/cancelSignIn'] button")
        self.gone()
        link = self.place.run("persona", "sign-in", "intranet", self.address + "/login")
        self.assertRegex(link.records[0]["url"], r"^http://.*/persona/[0-9a-f-]{36}$")
        self.check_error(self.place.run("persona", "sign-in", "intranet", "ftp://x"), REFUSED, "ftp")
        self.check_error(self.place.run("persona", "sign-in", "../x", self.address), REFUSED, "cannot be the name")

    def another_worker(self, address):
        self.worker.terminate()
        self.worker.wait(60)
        self.worker = self.start("worker", env={"HOLDFAST_WORKER_ADDRESS": address})

    def test_another_at_the_address_of_the_worker(self):
        view = self.person()
        self.ask(view)
        view.window("/login")
        pair = self.place.path / "impostor.pem"
        made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -days 1".split()
        subprocess.run(["openssl", *made, "-keyout", pair, "-out", pair], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        heard = []
        with context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True) as impostor:

            def listen():
                with impostor.accept()[0] as wire, contextlib.suppress(OSError):
                    heard.append(b"")
                    while more := wire.recv(65536):
                        heard.append(more)

            listening = threading.Thread(target=listen, daemon=True)
            listening.start()
            port = impostor.getsockname()[1]
            moved = self.place.run(
                "psql", "--role", "owner", "-c", f"update holdfast.persona_sign_in set port = {port}"
            )
            self.assertEqual(moved.code, 0, str(moved))
            view.open(view.value("location.href"))
            listening.join(60)
        self.assertEqual(heard, [b""], "it shows its certificate, and gets no key")

    def view_path(self):
        """Of a view that a script speaks to, without a browser."""
        link = self.place.run("persona", "sign-in", "press", self.address + "/login").records[0]["url"]
        return "/view/" + link.rsplit("/", 1)[1]

    def wire(self, path):
        wire = Wire(self.front, path, self.tokens["anna"])
        self.addCleanup(wire.socket.close)
        self.assertEqual(wire.status, 101)
        wire.say(type="size", width=640, height=480)
        wire.wait_for("pages")
        return wire

    def test_who_speaks_it_by_hand(self):
        path = self.view_path()
        for what, frame in (
            ("without a mask", {"data": b"{}", "masked": False}),
            ("of a kind that there is not", {"data": b"{}", "first": 0x83}),
            ("with an extension's bit", {"data": b"{}", "first": 0xC1}),
            ("of a gigabyte", {"data": b" " * 65536, "length": 1 << 30}),
            ("of 2^63", {"data": b" ", "length": 1 << 63}),
            ("that asks for an answer of 200 bytes", {"data": b" " * 200, "first": 0x89}),
            ("that asks in parts", {"data": b"", "first": 0x09}),
            ("that goes on with nothing", {"data": b"{}", "first": 0x80}),
            ("of no UTF-8", {"data": b"\xff\xfe"}),
        ):
            with self.subTest("a frame " + what):
                wire = self.wire(path)
                wire.send(**frame)
                wire.await_end()
        wire = self.wire(path)
        self.assertEqual(self.place.run("token", "revoke", "anna").code, 0)
        wire.await_end()
        refused = Wire(self.front, path, self.tokens["anna"])
        self.addCleanup(refused.socket.close)
        self.assertIn(refused.status, (401, 403))

    @only_in_full
    def test_what_is_said_by_hand_is_not_piled_up(self):
        wire = self.wire(self.view_path())
        odd = [None, -1, 1e308, "x" * 100_000, [], {}, True, [[[]]], [None, 7, "x"], {"x": 7}]
        names = "x y width height page text accept files number url parameters".split()
        kinds = "size show open back reload close login files nothing".split()
        methods = "Input.dispatchMouseEvent Input.dispatchKeyEvent Input.dispatchTouchEvent Input.dispatchDragEvent "
        methods += "Page.screencastFrameAck Page.handleJavaScriptDialog Page.reload Page.navigate Browser.close"
        for value in odd:
            wire.send(json.dumps(value).encode() + b"\0")
            for kind in kinds:
                wire.say(type=kind, **dict.fromkeys(names, value))
            for one in methods.split():
                wire.do(one, value)
                wire.do(one, dict.fromkeys(["type", "x", "key", "url"], value))
        wire.send(b"[" * 1_000_000 + b"\0")
        wire.send(b"a\0b\0")
        for _ in range(1000):
            parameters = {"type": "keyDown", "key": "x" * 100_000}
            wire.do("Input.dispatchKeyEvent", parameters)
        program = lambda pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        captures = [pid for pid in self.place.hooks() if program(pid).endswith(b"/holdfast-capture")]
        self.assertNotEqual(captures, [])
        wire.say(type="size", width=640, height=480)
        wire.wait_for("pages")
        for capture in captures:
            most = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{capture}/status").read_text())[1]
            self.assertLess(int(most), 40_000, "kB: what Chromium does not take yet is not piled up")

    def test_by_keyboard_alone_and_looked_at(self):
        view = self.person()
        self.ask(view)
        view.window("/login")
        self.assertEqual(view.value("document.activeElement.tagName"), "TEXTAREA")
        view.key("Tab")
        view.write("x")
        view.key("F6")
        self.assertEqual(view.value("document.activeElement.dataset.do"), "done")
        view.look(390, 844, True)
        view.screenshot("sign-in-phone")


class OwnDatabase(SignInCase):
    """With a database that is not the embedded one."""

    def place(self):
        self.database = Server(user="holdfast", port=free_port(), listen="*")
        self.addCleanup(self.database.__exit__)
        self.database.create()
        address = self.database_address()
        self.database.start()
        place = super().place(filled=False)
        key = place.path / "persona.key"
        key.write_text("f" * 64 + "\n")
        key.chmod(0o600)
        place.environment["HOLDFAST_PERSONA_KEY_FILE"] = str(key)
        place.environment["HOLDFAST_DATABASE_URL"] = f"postgresql://holdfast@{address}:{self.database.port}/postgres"
        made = place.run("migrate")
        self.assertEqual(made.code, 0, made)
        return place

    def database_address(self):
        return "127.0.0.1"


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class Faults(OwnDatabase):
    def test_the_database_is_away_and_a_worker_is_killed(self):
        view = self.person()
        self.ask(view)
        view.window("/login")
        self.database.stop()
        self.fill_in_login(view)
        view.window("/second")
        view.press("[data-do=done]")
        told = "document.querySelector('#view-state').textContent"
        view.until("it is said", f"{told} === 'Reading what the sites have stored.'")
        self.gone()
        self.database.start()
        view.until("it is kept", "document.querySelector('[data-view]').dataset.over === 'kept'")
        kept = lambda: [one["name"] for one in json.loads(self.place.run("persona", "export", "press").out)["cookies"]]
        self.assertEqual(kept(), ["step"])
        view.open(self.front + "personas")
        self.ask(view)
        view.window("/login")
        id = view.value("location.pathname").rsplit("/", 1)[1]
        left = lambda: [path for path, _, _ in os.walk(self.place.path) if id in path]
        self.assertNotEqual(left(), [])
        self.worker.kill()
        self.worker.wait(60)
        self.gone()
        view.until("it is said", f"{told}.startsWith('The connection to the browser is lost.')")
        self.worker = self.start("worker")
        until("nothing is left of it", lambda: not left() and self.sign_ins() == "0", 150)
        view.open(view.value("location.href"))
        self.assertIn("There is no such sign-in", view.value("document.body.innerText"))
        view.open(self.front + "personas")
        self.ask(view)
        view.window("/login")
        self.assertEqual(kept(), ["step"])
        self.nothing_said()


@unittest.skipUnless(chromium.PROGRAM and network_namespaces(), "needs Chromium, root and network namespaces")
class OtherMachine(OwnDatabase):
    """The worker and the site are on another machine than the server and the database."""

    def place(self):
        self.machine = Machine(21)
        self.addCleanup(self.machine.close)
        place = super().place()
        own = place.command
        inside = ["ip", "netns", "exec", self.machine.name]
        place.command = lambda *words: [*(inside if words[0] == "worker" else []), *own(*words)]
        return place

    def database_address(self):
        with open(self.database.directory / "data/pg_hba.conf", "a", encoding="utf-8") as file:
            file.write("host all all 10.199.0.0/16 trust\n")
        return self.machine.address

    def web_server(self):
        made = []

        def make():
            with open(f"/run/netns/{self.machine.name}", encoding="ascii") as network:
                self.assertEqual(ctypes.CDLL(None, use_errno=True).setns(network.fileno(), 0), 0)
            made.append(super(OtherMachine, self).web_server())

        maker = threading.Thread(target=make)  # a thread has a network of its own
        maker.start()
        maker.join()
        return made[0]

    def test_who_listens_on_the_network(self):
        heard = bytearray()
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        wire.bind((self.machine.cable, 0))
        wire.settimeout(0.2)
        over = threading.Event()

        def listen():
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    heard.extend(wire.recv(1 << 17))

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        view = self.person()
        self.ask(view)
        view.window("/login")
        self.fill_in_login(view)
        view.window("/second")
        view.press("[data-do=done]")
        view.until("it is kept", "document.querySelector('[data-view]').dataset.over === 'kept'")
        over.set()
        listening.join()
        wire.close()
        self.assertIn(b"sign_in_ready", heard, "the database is asked without TLS here")
        for secret in (PASSWORD, '"insertText"', '"frame"', "/second"):
            self.assertNotIn(secret.encode(), heard)
