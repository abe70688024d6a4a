"""Webhooks, from the program that makes something happen to a real HTTP server that is told, and every way in which
that goes wrong."""

import base64
import hashlib
import hmac
import json
import os
import signal
import subprocess
import threading
import time

from harness.case import CONFIGURATION, OK, REFUSED, Case, Database
from harness.collection import SHORT_LEASE
from harness.wait import until
from harness.web import Handler, LocalSite

SECRET = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
KEY = base64.b64decode(SECRET)


class Receiver(LocalSite):
    """Keeps what it is sent. `answer(path, times)` says what to answer to a message that came so often: a status, or a condition to wait for."""

    def __init__(self, answer=lambda path, times: 204):
        self.requests, self.problems = [], []
        self.lock = threading.Lock()
        receiver = self

        class Messages(Handler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    receiver.requests.append((self.path, dict(self.headers.items()), body))
                    times = sum(
                        1 for _, headers, _ in receiver.requests if headers["webhook-id"] == self.headers["webhook-id"]
                    )
                wanted = answer(self.path, times)
                if isinstance(wanted, threading.Event):
                    wanted.wait(60)
                    wanted = 204
                try:
                    self.send_response(wanted)
                    if wanted == 302:
                        self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # the sender has been killed

        super().__init__(Messages)

    def got(self, kind=None):
        with self.lock:
            return [
                (path, headers, json.loads(body))
                for path, headers, body in self.requests
                if kind is None or json.loads(body)["type"] == kind
            ]


class Webhooks(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Database()
        cls.number = 0

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.site = self.place()
        Webhooks.number += 1
        self.database = f"d{self.number}"
        self.server.sql(f"create database {self.database}")
        self.site.environment["HOLDFAST_DATABASE_URL"] = self.server.url(self.database)
        self.assertEqual(self.site.run("migrate").code, OK)
        self.site.hook(
            "page",
            "on_Snapshot__10_page.sh",
            'case $name in bad) echo "no luck" >&2; exit 3 ;; esac; echo "$url" >page.txt',
        )
        self.secrets = self.site.path / "secrets"
        self.secrets.write_text(f"# of all webhooks\nwhsec_{SECRET}\n")
        self.secrets.chmod(0o600)
        self.site.environment["HOLDFAST_WEBHOOKS_SECRET_FILE"] = str(self.secrets)
        self.logs = []

    def receiver(self, *arguments):
        receiver = Receiver(*arguments)
        self.addCleanup(receiver.close)
        return receiver

    def run_verb(self, *words, code=OK, env=None):
        done = self.site.holdfast(*words, env=env, expect=code)
        self.logs.append(done.err)
        return done

    def deliveries(self, **wanted):
        rows = self.run_verb("list", "deliveries", "--json", "--limit", "1000").records
        return [row for row in rows if all(row[name] == value for name, value in wanted.items())]

    def tried(self, count):
        """Whether so many were tried, once or, where that takes long, again."""
        return len([row for row in self.deliveries(owner=None) if row["attempts"] > 0]) == count

    def worker(self, *words, env=None):
        with open(self.site.path / "worker.log", "a") as log:
            process = self.site.start(
                "worker", *words, env={**SHORT_LEASE, **(env or {})}, stdout=subprocess.DEVNULL, stderr=log
            )
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def end(self, process):
        process.terminate()
        self.assertEqual(process.wait(120), OK)

    def assert_signed(self, request, keys=(KEY,)):
        path, headers, body = request
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        wanted = " ".join(
            "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode() for key in keys
        )
        self.assertEqual(headers["webhook-signature"], wanted)
        self.assertLess(abs(int(headers["webhook-timestamp"]) - time.time()), 300)
        self.assertEqual(headers["Content-Type"], "application/json")

    def assert_secret_stays_secret(self):
        """Neither in a row of any table, nor in what any process has said."""
        tables = self.server.sql(
            "select 'holdfast.' || quote_ident(relname) from pg_class where relnamespace = 'holdfast'::regnamespace and relkind in ('r', 'v')",
            self.database,
        ).split()
        self.assertIn("holdfast.v_delivery", tables)
        rows = {table: self.server.sql(f"select t::text from {table} t", self.database) for table in tables}
        log = self.site.path / "worker.log"
        said = "".join(self.logs) + (log.read_text() if log.exists() else "")
        for word in (SECRET, KEY.decode(), KEY.hex()):
            self.assertNotIn(word, said)
            self.assertEqual([table for table, text in rows.items() if word in text], [])
        self.assertNotIn(
            "tok=en", said, "nor what the URL of a webhook may hold, but in the one table that no role reads"
        )
        self.assertEqual([table for table, text in rows.items() if "tok=en" in text], ["holdfast.webhook"])

    def test_what_happens_is_told_signed_and_once_if_all_goes_well(self):
        receiver = self.receiver()
        self.run_verb("webhook", "add", "all", receiver.url + "/all?tok=en")
        self.run_verb("webhook", "add", "some", receiver.url + "/some", "--on", "snapshot.failed")
        self.run_verb("add", "--wait", "--label", "the label", "http://127.0.0.1:9/good", "http://127.0.0.1:9/bad")
        # `add` has ended, and so have its hooks: what they caused went out before.
        crawls = [body for path, _, body in receiver.got("crawl.sealed")]
        self.assertEqual(len(crawls), 1)
        self.assertEqual(crawls[0]["data"]["label"], "the label")
        self.assertEqual(crawls[0]["data"]["outcome"], "partial")
        self.assertEqual((crawls[0]["data"]["snapshots"], crawls[0]["data"]["failed"]), (2, 1))
        failed = receiver.got("snapshot.failed")
        self.assertEqual(sorted(path for path, _, _ in failed), ["/all?tok=en", "/some"])
        self.assertEqual(failed[0][2]["data"]["url"], "http://127.0.0.1:9/bad")
        self.assertIn("no luck", failed[0][2]["data"]["error"])
        for request in receiver.requests:
            self.assert_signed(request)
        ids = [headers["webhook-id"] for _, headers, _ in receiver.got()]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual([row["status"] for row in self.deliveries()], ["delivered"] * 3)
        shown = {row["name"]: row for row in self.run_verb("webhook", "list", "--json").records}
        self.assertEqual((shown["all"]["delivered"], shown["some"]["delivered"], shown["all"]["waiting"]), (2, 1, 0))
        self.assertEqual(shown["all"]["url"], receiver.url + "/…")
        self.assertIn("Nothing waits for it", self.run_verb("why", "all", "--json").records[0]["reason"])
        self.assert_secret_stays_secret()

    def test_a_receiver_that_is_away_is_tried_again_and_told_in_the_end(self):
        receiver = self.receiver(lambda path, times: 503 if times < 3 else 200)
        self.run_verb("webhook", "add", "slow", receiver.url + "/")
        worker = self.worker()
        self.run_verb("add", "--bg", "http://127.0.0.1:9/good")
        until("it has failed", lambda: self.deliveries(last_status=503))

        def explained():
            tries = self.deliveries()[0]["attempts"]
            failed = f"1 delivery waits: its receiver failed {tries} time{'s' * (tries > 1)} in a row"
            reason = self.run_verb("why", "slow", "--json").records[0]["reason"]
            return f"{failed} (it answered HTTP 503), it is tried again at" in reason

        until("why says how often it has failed", explained)
        self.run_verb("webhook", "retry", "slow")
        until("it has failed again", lambda: self.deliveries()[0]["attempts"] >= 2)
        self.run_verb("webhook", "retry", "slow")
        until("it has arrived", lambda: self.deliveries(status="delivered"))
        bodies = {body for _, _, body in receiver.requests}
        self.assertEqual((len(receiver.requests), len(bodies)), (3, 1), "the same bytes each time")
        self.assertEqual(len({headers["webhook-id"] for _, headers, _ in receiver.requests}), 1)
        for request in receiver.requests:
            self.assert_signed(request)
        self.end(worker)

    def test_who_is_killed_while_sending_is_replaced(self):
        hold = threading.Event()
        receiver = self.receiver(lambda path, times: hold if times == 1 else 204)
        self.addCleanup(hold.set)
        self.run_verb("webhook", "add", "one", receiver.url + "/", "--on", "crawl.sealed")
        timeout = {"HOLDFAST_WEBHOOKS_TIMEOUT": "2s"}  # a claim is three times that
        first = self.worker(env=timeout)
        self.run_verb("add", "--bg", "http://127.0.0.1:9/good")
        until("it is being sent", lambda: receiver.got())
        self.assertIn("is sending now", self.run_verb("why", "one", "--json").records[0]["reason"])
        first.kill()
        first.wait()
        second = self.worker(env=timeout)
        until("another has sent it", lambda: self.deliveries(status="delivered"))
        self.assertEqual(len({headers["webhook-id"] for _, headers, _ in receiver.got()}), 1)
        self.assertGreaterEqual(len(receiver.got()), 2)
        self.end(second)

    def test_who_is_killed_after_sending_and_before_it_is_written_down_sends_twice(self):
        receiver = self.receiver()
        self.run_verb("webhook", "add", "one", receiver.url + "/", "--on", "crawl.sealed")
        first = self.worker(
            env={"HOLDFAST_TEST_POINT": "kill:before_webhook_report", "HOLDFAST_WEBHOOKS_TIMEOUT": "1s"}
        )
        self.run_verb("add", "--bg", "http://127.0.0.1:9/good")
        first.wait(120)
        self.assertEqual(len(receiver.got()), 1)
        second = self.worker()
        until("it has been written down", lambda: self.deliveries(status="delivered"))
        requests = receiver.got()
        self.assertEqual(len(requests), 2)
        self.assertEqual(requests[0][1]["webhook-id"], requests[1][1]["webhook-id"], "which tells the receiver")
        self.end(second)

    def test_a_lost_worker_is_told(self):
        receiver = self.receiver()
        self.run_verb("webhook", "add", "one", receiver.url + "/", "--on", "worker.lapsed")
        self.site.hook("page", "on_Snapshot__10_page.sh", "gate $name")
        first = self.worker()
        self.run_verb("add", "--bg", "http://127.0.0.1:9/good")
        until("its hook runs", lambda: self.site.arrived("good"))
        [row] = [
            r
            for r in self.run_verb("list", "workers", "--status", "running", "--json").records
            if r["process_type"] == "worker"
        ]
        os.kill(row["pid"], signal.SIGKILL)
        first.wait(60)
        self.site.open("all")
        second = self.worker()
        until("it is told", lambda: receiver.got("worker.lapsed"))
        self.assertEqual(receiver.got("worker.lapsed")[0][2]["data"]["id"], row["id"])
        self.end(second)

    def test_a_receiver_that_hangs_keeps_no_other_from_being_told(self):
        hold = threading.Event()
        receiver = self.receiver(lambda path, times: hold if path == "/hangs" else 204)
        self.addCleanup(hold.set)
        for name in ("hangs", "works"):
            self.run_verb("webhook", "add", name, f"{receiver.url}/{name}", "--on", "crawl.sealed")
        worker = self.worker(env={"HOLDFAST_WEBHOOKS_TIMEOUT": "60s"})
        for number in range(6):
            self.run_verb("add", "--bg", f"http://127.0.0.1:9/good{number}")
        until("the other is told of all", lambda: sum(path == "/works" for path, _, _ in receiver.got()) == 6)
        self.assertLessEqual(sum(path == "/hangs" for path, _, _ in receiver.got()), 4)
        self.end(worker)
        waiting = self.deliveries(webhook="hangs")
        self.assertEqual({row["status"] for row in waiting}, {"waiting"})
        self.assertEqual({row["owner"] for row in waiting}, {None}, "what it was sending is released")

    def test_addresses_inside_are_not_reached(self):
        receiver = self.receiver()
        private = {"HOLDFAST_URLS_ALLOW_PRIVATE": "false"}
        self.check_error(
            self.site.run("webhook", "add", "inside", receiver.url + "/", env=private), REFUSED, "not a public host"
        )
        for url in ("ftp://example.org/", "http://user:word@example.org/", "example.org"):
            self.assertEqual(self.site.run("webhook", "add", "odd", url).code, REFUSED, url)
        self.assertEqual(self.site.run("webhook", "add", "Bad Name", "https://example.org/").code, REFUSED)
        self.assertEqual(
            self.site.run("webhook", "add", "odd", "https://example.org/", "--on", "nothing").code, REFUSED
        )
        self.run_verb("webhook", "add", "inside", receiver.url + "/")
        self.run_verb("webhook", "test", "inside")
        worker = self.worker(env=private)
        until("it has been tried", lambda: self.tried(1))
        self.assertRegex(self.deliveries()[0]["last_error"], r"its address 127\.0\.0\.1 is not public")
        self.end(worker)
        self.assertEqual(receiver.got(), [])

    def test_answers_that_are_no_yes(self):
        receiver = self.receiver(lambda path, times: int(path[1:]))
        for status in (302, 410):
            self.run_verb("webhook", "add", f"s{status}", f"{receiver.url}/{status}")
            self.run_verb("webhook", "test", f"s{status}")
        worker = self.worker()
        until("both have answered", lambda: self.tried(2))
        self.end(worker)
        self.assertNotIn("/elsewhere", [path for path, _, _ in receiver.got()], "no redirect is followed")
        self.assertEqual(self.deliveries(webhook="s302")[0]["status"], "waiting")
        self.assertEqual(self.deliveries(webhook="s410")[0]["status"], "given_up")
        gone = [row for row in self.run_verb("list", "webhooks", "--json").records if row["name"] == "s410"][0]
        self.assertFalse(gone["enabled"])
        self.assertIn("It is not enabled (its receiver said that it is gone (410))", gone["reason"])

    def test_secrets(self):
        receiver = self.receiver()
        own = "the-secret-of-one-alone"
        self.secrets.write_text(f"one {own}\none whsec_{SECRET}\n")
        self.run_verb("webhook", "add", "one", receiver.url + "/one")
        self.run_verb("webhook", "add", "two", receiver.url + "/two")
        worker = self.worker()
        self.run_verb("add", "--bg", "http://127.0.0.1:9/good")
        until("the one with a secret is told", lambda: receiver.got())
        self.assert_signed(receiver.requests[0], (own.encode(), KEY))
        self.assertEqual([row["status"] for row in self.deliveries(webhook="two")], ["waiting"])
        self.assertIn(
            "has its secret (webhooks.secret_file)", self.run_verb("why", "two", "--json").records[0]["reason"]
        )
        self.secrets.write_text(f"whsec_{SECRET}\n")
        until("a changed file is seen", lambda: self.deliveries(webhook="two", status="delivered"))
        self.assert_signed(receiver.requests[1])
        self.end(worker)
        self.assertNotIn(own, (self.site.path / "worker.log").read_text())
        for text, word in (
            ("short\n", "too short"),
            ("a b c\n", "two words"),
            ("# nothing\n", "no secret"),
            ("whsec_!!!!\n", "not base64"),
        ):
            self.secrets.write_text(text)
            self.check_error(self.site.run("worker"), CONFIGURATION, "webhooks.secret_file", word)

    def test_paused_and_removed(self):
        receiver = self.receiver()
        self.run_verb("webhook", "add", "one", receiver.url + "/")
        self.run_verb("webhook", "pause", "one")
        self.run_verb("add", "--wait", "http://127.0.0.1:9/good")
        self.assertEqual(self.deliveries(), [])
        self.assertIn("It is not enabled (paused by", self.run_verb("why", "one", "--json").records[0]["reason"])
        self.run_verb("webhook", "test", "one")
        self.run_verb("webhook", "resume", "one")
        self.run_verb("add", "--wait", "http://127.0.0.1:9/good2")
        self.assertEqual(sorted(body["type"] for _, _, body in receiver.got()), ["crawl.sealed", "test"])
        self.run_verb("webhook", "remove", "one")
        self.check_error(self.site.run("webhook", "test", "one"), REFUSED, 'there is no webhook "one"')
        self.assertEqual(self.run_verb("check").code, OK)


if __name__ == "__main__":
    import unittest

    unittest.main()
