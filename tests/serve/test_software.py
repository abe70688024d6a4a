"""Software that others wrote, signed in to by hand in the live view: captured on three workers, its session ended on
its own side, noticed, signed in again, gone on. And nothing of what signs in stands anywhere outside of the persona.

An OpenID provider with a second factor and a window of its own (packages of Django from PyPI), and DokuWiki (packages
of Debian, run by PHP). What cannot be had here is skipped."""

import base64
import gzip
import hmac
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import chromium
from test_sign_in import SignInCase

from harness.case import PROGRAM
from harness.environment import python_with
from harness.full import only_in_full
from harness.wait import free_port, until

HERE = Path(__file__).resolve().parent
PASSWORD, SECOND = "seeded-Passw0rd-of-anna", "seeded-Second-Passw0rd"
TOTP_KEY = b"seeded-totp-key-0001"
DJANGO = "django django-two-factor-auth django-oauth-toolkit mozilla-django-oidc".split()
WIKI = "dokuwiki php-geshi php-phpseclib libphp-simplepie".split()


def totp(at):
    """The six digits that a person's device shows (RFC 6238)."""
    digest = hmac.digest(TOTP_KEY, struct.pack(">Q", int(at) // 30), "sha1")
    at = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[at : at + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


class Software:
    """Its processes and files. What a login needs is in `secrets`."""

    def __init__(self):
        self.place = Path(tempfile.mkdtemp(prefix="holdfast-software-"))
        self.processes, self.secrets, self.codes = [], [PASSWORD, SECOND], []

    def fetch(self, *command):
        """Skips the test where it does not work."""
        try:
            done = subprocess.run(command, cwd=self.place, capture_output=True, text=True, timeout=400)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise unittest.SkipTest(f"{command[0]}: {problem}") from None
        if done.returncode:
            raise unittest.SkipTest(" ".join([*map(str, command), done.stderr[-300:]]))

    def start(self, *command, answers, **environment):
        log = open(self.place / "log", "ab")
        inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        process = subprocess.Popen(
            command,
            cwd=self.place,
            env={**inherited, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        self.processes.append(process)
        log.close()

        def answer():
            if process.poll() is not None:
                raise AssertionError((self.place / "log").read_text(errors="replace")[-3000:])
            try:
                return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(answers).status
            except urllib.error.HTTPError as error:
                return error.code < 500
            except OSError:
                return False

        until("it answers", answer, 120)

    def close(self):
        for process in self.processes:
            process.terminate()
            process.wait(30)
        shutil.rmtree(self.place)


class Provider(Software):
    check, noticed = "redirect", "the page led to the login"
    used = 0  # the time whose code was taken last

    def set_up(self):
        python = python_with(Path(PROGRAM).parents[1] / "openid", *DJANGO) / "python"
        # Two hosts, as a site and a provider have.
        own, site = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.2:{free_port()}"
        self.url, self.login = site, site + "/"
        self.secrets += [TOTP_KEY.decode(), base64.b32encode(TOTP_KEY).decode(), TOTP_KEY.hex()]
        given = {"PASSWORD": PASSWORD, "TOTP_KEY": TOTP_KEY.hex()}
        for role, here, there in (("provider", own, site), ("site", site, own)):
            command = [python, "-B", HERE / "openid.py", role, here, there, self.place]
            self.start(*command, answers=here, **given)

    def page(self, name):
        return f"{self.url}/members/{name}"

    def sign_in(self, view):
        titled(view, "/")
        view.key("Enter")  # the button that opens the provider's window
        titled(view, "Login auth")
        view.write("anna")
        view.key("Tab")
        view.write(PASSWORD)
        view.key("Enter")
        titled(view, "Login token")
        # Each code is taken once; that of the next half minute is taken too.
        self.used = max(int(time.time()), self.used + 30)
        self.codes.append(totp(self.used))
        view.write(self.codes[-1])
        view.key("Enter")
        at(view, "http://127.0.0.1:[0-9]+/o/authorize/")
        for key in ("Tab", "Tab", "Enter"):  # Cancel, Authorize
            view.key(key)
        at(view, f"{self.url}/members/start$")

    def end_session(self):
        for role in ("provider", "site"):
            with sqlite3.connect(self.place / f"{role}.sqlite", timeout=30) as database:
                database.execute("delete from django_session")


class Wiki(Software):
    check, noticed = None, "the page asks for a login"

    def set_up(self):
        self.fetch("php", "-r", "exit(function_exists('xml_parser_create') && extension_loaded('mbstring') ? 0 : 1);")
        self.fetch("apt-get", "download", *WIKI)
        for package in sorted(self.place.glob("*.deb")):
            self.fetch("dpkg-deb", "-x", package, self.place / "root")
        root = self.place / "root"
        for file in root.rglob("*"):  # it lies elsewhere
            if file.is_symlink() and (target := os.readlink(file)).startswith("/"):
                file.unlink()
                file.symlink_to(f"{root}{target}")
            elif file.suffix == ".php" and file.is_file():
                text = file.read_bytes()
                file.write_bytes(
                    re.sub(
                        rb"(?<![\w.])(/etc/dokuwiki|/var/lib/dokuwiki|/usr/share/)", f"{root}".encode() + rb"\1", text
                    )
                )
        etc, data = root / "etc/dokuwiki", root / "var/lib/dokuwiki/data"
        (etc / "local.php").write_text("<?php $conf['useacl'] = 1; $conf['userewrite'] = 0;")
        (root / "var/lib/dokuwiki/acl/acl.auth.php").write_text("* @ALL 0\n* @user 1\n")
        # The wiki does so itself where its scripts are installed.
        (etc / "meta.html").write_text(
            "<script>addEventListener('load', () => { const u = document.querySelector('[name=u]');"
            " if (u) { u.focus(); document.title = 'ready' } })</script>"
        )
        self.pages = data / "pages"
        self.set_password(PASSWORD)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.login = self.url + "/doku.php?id=start&do=login"
        (self.place / "sessions").mkdir()
        own = f"session.save_path={self.place}/sessions"
        include = f"include_path={root}/usr/share/php:{root}/usr/share/php-geshi"
        self.start(
            "php",
            "-d",
            include,
            "-d",
            own,
            "-S",
            f"127.0.0.1:{port}",
            "-t",
            root / "usr/share/dokuwiki",
            answers=self.login,
        )

    def set_password(self, password):
        self.password = password
        code = "echo password_hash($argv[1], PASSWORD_BCRYPT);"
        hashed = subprocess.run(["php", "-r", code, password], capture_output=True, text=True, check=True).stdout
        users = self.place / "root/var/lib/dokuwiki/acl/users.auth.php"
        users.write_text(f"anna:{hashed}:Anna:anna@site.test:user\n")

    def page(self, name):
        (self.pages / f"{name}.txt").write_text(f"====== {name} ======\n\nFor members.\n")
        return f"{self.url}/doku.php?id={name}"

    def sign_in(self, view):
        self.page("start")
        titled(view, "ready")
        view.write("anna")
        view.key("Tab")
        view.write(self.password)
        view.key("Enter")
        at(view, f"{self.url}/doku.php.id=start$")

    def end_session(self):
        self.set_password(SECOND)
        for file in (self.place / "sessions").iterdir():
            file.unlink()


def at(view, pattern):
    """Waits until the view shows this address, loaded."""
    address = "document.querySelector('[data-address]').textContent"
    view.until(pattern, f"new RegExp({'^' + pattern!r}).test({address}) && !{address}.endsWith(' (loading)')")


def titled(view, title):
    """Waits until the view shows the page of this title, loaded."""
    view.until(title, f"document.querySelector('[data-address]').title.trim() === {title!r}")
    at(view, "http")


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class OfOthers(SignInCase):
    settings = {"HOLDFAST_HOOK_PORTS": "1-65535"}  # that of the provider is another than the site's

    def signed_in(self, view, software):
        view.open(self.front + "personas")
        view.until("the form is there", "!!document.querySelector('form[action=\"/do/signIn\"]')")
        view.value(
            f"(f => {{ f.elements.id.value = 'members'; f.url.value = {software.login!r} }})"
            "(document.querySelector('form[action=\"/do/signIn\"]'))"
        )
        view.click("form[action='/do/signIn'] button")
        software.sign_in(view)
        view.press("[data-do=done]")
        view.until("it is kept", "document.querySelector('[data-view]').dataset.over === 'kept'")
        until("the browser has ended", lambda: not self.place.hooks(), 60)

    def rows(self, statement):
        done = self.place.holdfast("psql", "--role", "owner", "-Atc", statement)
        return done.out.splitlines()

    def add(self, software, *names):
        pages = [software.page(name) for name in names]
        self.place.holdfast("add", *pages, "--bg", "--persona", "members", "-p", "browser,title")

    def sealed(self, count):
        until(
            "they are sealed", lambda: self.rows("select count(*) from holdfast.snapshot_sealed") == [str(count)], 240
        )

    def goes_on(self, software):
        self.addCleanup(software.close)
        software.set_up()
        view = self.person()
        self.signed_in(view, software)
        if software.check:
            check = f"{software.check}={software.login}"
            self.assertEqual(self.place.run("persona", "set", "members", "--check", check).code, 0)
        # So that each of three workers has something to do.
        self.assertEqual(
            self.place.run("host", "set", urllib.parse.urlsplit(software.url).hostname, "--parallel", "0").code, 0
        )
        for _ in range(2):
            self.start("worker")
        workers = "select count(*) from holdfast.process where process_type = 'worker' and status = 'running'"
        until("three workers run", lambda: self.rows(workers) == ["3"], explain=self.logs)
        took = "select count(distinct owner_id) from holdfast.snapshot_sealed"
        count = 0
        for number in range(8):  # until each worker has had one
            self.add(software, *(f"a{number}{letter}" for letter in "abcdef"))
            count += 6
            self.sealed(count)
            if self.rows(took) == ["3"]:
                break
        self.assertEqual(self.rows(took), ["3"])
        first = self.session_secrets()
        software.end_session()
        self.add(software, "b0", "b1", "b2")
        out = "select signed_out_reason from holdfast.v_persona"
        until("it is noticed", lambda: self.rows(out) == [software.noticed], 90, self.logs)
        self.signed_in(view, software)
        self.sealed(count + 3)
        self.assertEqual(self.rows("select distinct outcome from holdfast.snapshot_sealed"), ["succeeded"])
        titles = " ".join(self.rows("select title from holdfast.v_snapshot"))
        for name in ("a0a", "b0", "b1", "b2"):
            self.assertIn(name, titles)
        self.nowhere({*software.secrets, *first, *self.session_secrets()}, software.codes)

    def logs(self):
        return "".join(file.read_text()[-2000:] for file in sorted(self.place.path.glob("*.log")))

    def session_secrets(self):
        state = json.loads(self.place.run("persona", "export", "members").out)
        return {one["value"] for one in state["cookies"] if one["httpOnly"]} | {
            one["password"] for one in state.get("httpCredentials", [])
        }

    def nowhere(self, secrets, codes):
        """In no file of the archive, no dump, no answer to a reader, no log, no export, no process that still runs."""
        place = self.place
        exported = place.path / "exported"
        self.assertEqual(place.run("export", "--all", "--format", "files", "-o", exported).code, 0)
        everything = {"archive": self.files(place.data / "archive"), "export": self.files(exported)}
        # Logs and what the pages and the verbs say of it.
        everything["logs"] = [(str(file), file.read_bytes()) for file in place.path.glob("*.log")]
        for words in (["persona", "show", "members"], ["events"], ["list"], ["show", "--json"]):
            everything[" ".join(words)] = [("", place.run(*words).out.encode())]
        dump = ["pg_dump", "-h", place.data / "postgres-run", "-U", "holdfast", "-d", "holdfast"]
        for role in ("holdfast", "holdfast_operator", "holdfast_reader"):
            done = subprocess.run(
                [*dump, *(["--role", role] if role != "holdfast" else [])], capture_output=True, cwd="/"
            )
            if role == "holdfast":
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b"COPY holdfast.persona", done.stdout)
            everything["dump of " + role] = [("", done.stdout)]
        processes = [Path(f"/proc/{pid}") for pid in place.own_programs() + place.hooks()]
        everything["processes"] = [
            (f"{one}/{name}", (one / name).read_bytes())
            for one in processes
            if one.exists()
            for name in ("cmdline", "environ")
        ]
        found = []
        for secret in sorted(secrets):
            for form in forms(secret):
                for where, texts in everything.items():
                    found += [(where, name, form) for name, text in texts if form in text]
        # Six digits stand in many places by chance.
        code = (
            re.compile(rb"(?<![0-9a-fA-F.])(" + b"|".join(one.encode() for one in codes) + rb")(?![0-9a-fA-F])")
            if codes
            else None
        )
        if code:
            for where, texts in everything.items():
                found += [(where, name, "a code") for name, text in texts if where != "archive" and code.search(text)]
        self.assertEqual(found, [])
        self.assertGreater(len(everything["archive"]), 20)
        self.assertTrue(everything["processes"])  # how many still run is a matter of chance

    def files(self, top):
        found = []
        for file in top.rglob("*"):
            if file.is_file() and not file.is_symlink():
                text = file.read_bytes()
                found.append((str(file), gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text))
        return found

    @only_in_full
    def test_openid_with_a_second_factor(self):
        self.goes_on(Provider())

    @only_in_full
    def test_a_wiki(self):
        self.goes_on(Wiki())


def forms(secret):
    raw = secret.encode()
    yield raw
    yield urllib.parse.quote(secret, safe="").encode()
    for before in range(3):
        coded = base64.b64encode(b"x" * before + raw)
        yield coded[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]


if __name__ == "__main__":
    unittest.main()
