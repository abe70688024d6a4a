"""Notices of watches: by e-mail to a real server of SMTP, and through Apprise."""

import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
from pathlib import Path

from harness.case import CONFIGURATION, OK, PROGRAM, REFUSED
from harness.collection import SHORT_LEASE
from harness.environment import python_with
from harness.smtp import MailServer
from harness.wait import until
from harness.web import Handler, LocalSite
from test_watch import PLUGINS, WatchCase

APPRISE = Path(PROGRAM or "/").parents[1] / "apprise-tools"


class Receiver(LocalSite):
    """A service that Apprise posts to: keeps each message, and answers the one of a number as `behave` says."""

    def __init__(self, behave):
        self.got, lock = [], threading.Lock()
        receiver = self

        class Service(Handler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    receiver.got.append(body)
                    status = behave(len(receiver.got))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        super().__init__(Service)
        self.port = self.url.rsplit(":", 1)[1].strip("/")


class Mail(WatchCase):
    """Notices by e-mail: an outbox, so none is lost, and a repeated one has the same Message-ID."""

    def setUp(self):
        super().setUp()
        self.home.environment |= {"HOLDFAST_WEBHOOKS_TIMEOUT": "1s", "HOLDFAST_MAIL_TLS": "false"}

    def serve(self, *behave, tls=None):
        mail = MailServer(*behave, tls=tls)
        self.addCleanup(mail.close)
        self.home.environment |= {
            "HOLDFAST_MAIL_SERVER": mail.url,
            "HOLDFAST_MAIL_FROM": "holdfast@archive.example",
            "HOLDFAST_SERVE_URL": "https://archive.example/",
        }
        return mail

    def change(self, notify="me@example.org"):
        """Makes a change of a watched page; returns the row of its delivery."""
        self.site.show("10")
        self.watch("--notify", notify, "--label", "L\u00e4mp")
        self.capture()
        self.capture()  # what it has of its own counts as noise
        self.site.show("10", "<p>A new line of text</p>")
        self.assertEqual(len(self.capture()), 1)

    def deliveries(self):
        return self.home.lines("list", "deliveries", "--json")

    def test_a_notice_has_what_changed_in_words_and_links(self):
        mail = self.serve()
        self.change()
        until("the message", lambda: mail.got())
        (message,) = mail.got()
        (row,) = self.deliveries()
        self.assertEqual((message["To"], message["From"]), ("me@example.org", "holdfast@archive.example"))
        self.assertEqual(message["Subject"], "L\u00e4mp: text: 5 words added, 0 removed")
        self.assertRegex(message["Message-ID"], rf"^<[0-9a-f]{{8}}-{row['id']}@archive.example>$")
        self.assertIsNotNone(message["Date"].datetime)
        self.assertEqual(message.get_content_type(), "multipart/alternative")
        body = message.get_body(("plain",)).get_content()
        html = message.get_body(("html",)).get_content()
        self.assertIn('<ins style="background:#d4f4d4">A new line of text</ins>', html)
        self.assertNotIn("cid:", html)  # no plugin made pictures
        snapshot = self.notices(self.name)[0]["snapshot_id"]
        for words in (
            "{+A new line of text+}",
            f"{self.site.url}/page",
            f"https://archive.example/snapshot/{snapshot}",
        ):
            self.assertIn(words, body)
        self.assertNotIn("More", body)

    def test_a_notice_has_the_page_s_pictures_before_and_now(self):
        mail = self.serve()
        for plugin in ("browser", "screenshot"):
            shutil.copytree(PLUGINS / plugin, self.home.plugins / plugin)
        self.home.environment["HOLDFAST_WEBHOOKS_TIMEOUT"] = "20s"
        self.change()
        until("the message", lambda: mail.got())
        html = mail.got()[0].get_body(("related", "html"))
        self.assertEqual(html.get_content_type(), "multipart/related")
        text, *pictures = html.iter_parts()
        self.assertEqual([part["Content-ID"] for part in pictures], ["<before>", "<now>"])
        files = [part.get_content() for part in pictures]
        self.assertTrue(all(file.startswith(b"\xff\xd8\xff") for file in files))
        self.assertNotEqual(*files)
        for name in ("before", "now"):
            self.assertIn(f'src="cid:{name}"', text.get_content())
        # A picture that is gone leaves the message whole, and so does one that is none.
        rows = self.home.lines("list", "snapshots", "--json")
        before, now = (
            self.home.data / "archive" / row["directory"] / "screenshot/thumbnail.jpg" for row in rows[1::-1]
        )
        before.unlink()
        now.write_bytes(b"<script>")
        self.site.show("10", "<p>A new line of text and more</p>")
        self.assertEqual(len(self.capture()), 1)
        until("the second message", lambda: len(mail.got()) == 2)
        _, *pictures = mail.got()[1].get_body(("related", "html")).iter_parts()
        self.assertEqual([part["Content-ID"] for part in pictures], ["<now>"])

    def test_a_server_that_hangs_gets_it_again(self):
        mail = self.serve(lambda number: "hang" if number == 1 else "451 later" if number == 2 else "take")
        self.change()
        worker = self.home.start("worker", env=SHORT_LEASE)
        until("the worker", lambda: self.home.lines("list", "workers", "--status", "running"))
        until("the third message", lambda: len(mail.got()) == 3)
        until("its report", lambda: self.deliveries()[0]["status"] == "delivered")
        worker.terminate()
        self.assertEqual(worker.wait(60), OK)
        self.assertEqual(len({message["Message-ID"] for message in mail.got()}), 1)
        self.assertEqual(self.deliveries()[0]["attempts"], 3)

    def test_a_sender_killed_in_the_middle_loses_nothing(self):
        self.change()
        mail = self.serve(lambda number: "hang" if number == 1 else "take")
        worker = self.home.start("worker", env=SHORT_LEASE)
        until("the first message", lambda: mail.got())
        worker.send_signal(signal.SIGKILL)
        worker.wait(60)
        self.assertEqual(self.deliveries()[0]["status"], "waiting")
        worker = self.home.start("worker", env=SHORT_LEASE)
        until("its report", lambda: self.deliveries()[0]["status"] == "delivered")
        worker.terminate()
        worker.wait(60)
        self.assertEqual(len({message["Message-ID"] for message in mail.got()}), 1)

    def test_what_is_not_encrypted_is_not_sent(self):
        secret = self.home.path / "password"
        secret.write_text("correct horse\n")
        secret.chmod(0o600)
        mail = self.serve()
        self.home.environment |= {
            "HOLDFAST_MAIL_TLS": "true",
            "HOLDFAST_MAIL_USER": "holdfast",
            "HOLDFAST_MAIL_PASSWORD_FILE": str(secret),
        }
        self.change()
        worker = self.home.start("worker", env=SHORT_LEASE)
        until("an attempt", lambda: self.deliveries()[0]["last_error"])
        worker.terminate()
        worker.wait(60)
        (row,) = self.deliveries()
        self.assertEqual((row["status"], mail.got()), ("waiting", []))
        self.assertNotIn("correct horse", str(row) + self.home.logs())
        self.assertIn("1 delivery waits", self.home.holdfast("why", "me@example.org").out)

    def test_a_server_with_a_certificate_of_one_s_own(self):
        ca, key, certificate = (self.home.path / name for name in ("ca.pem", "key.pem", "certificate.pem"))
        new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        signed = ["-CA", ca, "-CAkey", self.home.path / "ca.key", "-addext", "subjectAltName=IP:127.0.0.1"]
        for words in (
            [*new, "-subj", "/CN=our authority", "-keyout", self.home.path / "ca.key", "-out", ca],
            [*new, "-subj", "/CN=mail", "-keyout", key, "-out", certificate, *signed],
        ):
            subprocess.run(words, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        mail = self.serve(tls=context)
        self.home.environment["HOLDFAST_MAIL_TLS"] = "true"
        self.change()
        worker = self.home.start("worker", env=SHORT_LEASE)
        until("an attempt", lambda: self.deliveries()[0]["last_error"])
        worker.terminate()
        worker.wait(60)
        self.assertIn("certificate", self.deliveries()[0]["last_error"])
        self.assertEqual(mail.got(), [])
        worker = self.home.start("worker", MAIL_CA_FILE=ca, env=SHORT_LEASE)
        until("its report", lambda: self.deliveries()[0]["status"] == "delivered")
        worker.terminate()
        worker.wait(60)
        self.assertEqual(len(mail.got()), 1)

    def test_apprise_reaches_the_services_of_a_tag(self):
        """The real program, whose services are a web server of the test."""
        try:
            programs = python_with(APPRISE, "apprise")
        except (OSError, subprocess.SubprocessError):
            self.skipTest("apprise cannot be installed")
        receiver = Receiver(lambda number: 500 if number == 1 else 200)
        self.addCleanup(receiver.close)
        config = self.home.path / "apprise.conf"
        config.write_text(
            f"lamps=json://user:correct-horse@127.0.0.1:{receiver.port}/hook\nother=json://127.0.0.1:1/\n"
        )
        config.chmod(0o600)
        self.home.environment |= {"HOLDFAST_APPRISE_CONFIG": str(config), "HOLDFAST_WEBHOOKS_TIMEOUT": "30s"}
        self.change("apprise:lamps")
        (row,) = self.deliveries()
        self.assertEqual((row["status"], row["webhook"]), ("waiting", "apprise:lamps"))
        self.assertIn("apprise.config", self.home.holdfast("why", "apprise:lamps").out)
        self.home.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        machine = next(row for row in self.home.run("doctor", "--json").records if row["type"] == "Machine")
        self.assertRegex(machine["apprise"], r"/apprise \d")
        worker = self.home.start("worker", env=SHORT_LEASE)
        until("its report", lambda: self.deliveries()[0]["status"] == "delivered")
        worker.terminate()
        self.assertEqual(worker.wait(60), OK)
        first, second = receiver.got
        self.assertEqual(first, second)
        self.assertEqual(second["title"], "Holdfast")
        self.assertTrue(second["message"].startswith("L\u00e4mp: text: 5 words added, 0 removed\n"))
        self.assertIn("{+A new line of text+}", second["message"])
        self.assertNotIn("correct-horse", str(self.deliveries()) + self.home.logs())

    def test_apprise_that_hangs_is_ended_and_one_without_the_tag_says_so(self):
        program = self.home.path / "bin/apprise"
        program.parent.mkdir()
        config = self.home.path / "apprise.conf"
        config.write_text("")
        self.home.environment |= {
            "HOLDFAST_APPRISE_CONFIG": str(config),
            "PATH": f"{program.parent}:{os.environ['PATH']}",
        }
        self.change("apprise:lamps")
        for script, said in (("exec sleep 1000", "time limit"), ("exit 3", "no service has the tag lamps")):
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            config.chmod(0o600)
            worker = self.home.start("worker", env=SHORT_LEASE)
            until("an attempt", lambda: said in (self.deliveries()[0]["last_error"] or ""))
            worker.terminate()
            self.assertEqual(worker.wait(60), OK)
        config.chmod(0o644)
        self.home.holdfast("webhook", "retry", "apprise:lamps")
        worker = self.home.start("worker", env=SHORT_LEASE)
        until("an attempt", lambda: "apprise.config" in self.deliveries()[0]["last_error"])
        worker.terminate()
        worker.wait(60)
        self.check_error(self.home.run("watch", "edit", self.name, "--notify", "apprise:a b"), REFUSED, "apprise:TAG")

    def test_settings_that_cannot_be(self):
        for name, value in (("MAIL_SERVER", "mail.example.org"), ("MAIL_FROM", "nobody")):
            self.serve()
            self.home.environment["HOLDFAST_" + name] = value
            self.check_error(self.home.run("run"), CONFIGURATION, name.lower().replace("_", "."))
