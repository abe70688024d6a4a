#!/usr/bin/env python3
"""Databases as administrators keep them: owners without CREATEROLE or superuser, wrong encodings, rotated passwords,
transactions that people leave open.

    tests/operate/administrator.py build/dev/bin/holdfast [Class.test]

HOLDFAST_TEST_POSTGRES names the programs of another version of PostgreSQL: /usr/lib/postgresql/18/bin.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
from harness import case, suites  # noqa: E402
from harness.collection import SHORT_LEASE, OnServer  # noqa: E402
from harness.postgres import PgBouncer, Server, give  # noqa: E402
from harness.wait import Failure, free_port  # noqa: E402

FAILED, CONFIGURATION = 1, 78
HOOK = """#!/bin/sh
until [ -e %s ]; do sleep 0.1; done
echo kept >page.txt
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"page.txt"}'
"""


class Collection(OnServer):
    """A server of an administrator `admin`, who makes databases and owners for us."""

    settings = {"DISK_MINIMUM_FREE": "1m", "LOG_FORMAT": "text"}

    def __init__(self, owner="owner", database="holdfast", **server):
        super().__init__()
        self.user, self.database = owner, database
        self.go = self.path / "go"  # without it, no hook comes to its end
        self.go.touch()
        self.hook("page", "on_Snapshot__50_page.sh", HOOK % self.go)
        self.server = self.add_server(lambda path: Server(path, user="admin", port=free_port(), **server))
        self.server.create()
        self.server.start()

    def admin(self, text, database="postgres"):
        return self.server.sql(text, database)

    def make(self, rights="", more=""):
        """An owner with a database of its own."""
        self.admin(f"create role {self.user} login {rights}")
        self.admin(f"create database {self.database} owner {self.user} {more}")


class Case(case.Case):
    profile = Collection


class Roles(Case):
    def reads(self, c, login):
        """What a login with holdfast_reader sees."""
        return c.server.run(
            "psql", "-X", "-A", "-t", "-d", c.database, "-U", login, "-c", "select count(*) from holdfast.v_snapshot"
        ).strip()

    def test_an_owner_that_may_not_create_roles_is_told_what_an_administrator_runs(self):
        c = self.collection()
        c.make()
        (line,) = c.lines("migrate")
        (lacking,) = [left for left in line["lacking"] if left["what"] == "roles"]
        self.assertIn("CREATEROLE", lacking["why"])
        self.assertIn("create role holdfast_reader", c.holdfast("migrate").err, "each time")
        c.admin(lacking["statement"])
        c.admin("create role anna login; grant holdfast_reader to anna")
        self.assertEqual(c.lines("migrate")[0]["lacking"], [])
        self.assertEqual(self.reads(c, "anna"), "0")
        for damage in (
            "revoke select on holdfast.v_snapshot from holdfast_reader",
            "revoke usage on schema holdfast from holdfast_reader",
            "revoke execute on function holdfast.why(text) from holdfast_reader",
            "grant execute on function holdfast.crawl_pause(uuid, text, text) to public",
            "alter function holdfast.why(text) security invoker",
        ):
            with self.subTest(damage):
                c.admin(damage, c.database)
                self.assertEqual(c.admin("select holdfast.grants_differ()", c.database), "t")
                self.assertEqual(c.lines("migrate")[0]["lacking"], [])
                self.assertEqual(c.admin("select holdfast.grants_differ()", c.database), "f")
        self.assertEqual(self.reads(c, "anna"), "0")

    def test_an_owner_with_createrole_acts_as_the_roles_that_it_made(self):
        """From PostgreSQL 16 on, the maker of a role is a member of it and may not act as it."""
        c = self.collection()
        c.make("createrole")
        self.assertEqual(c.lines("migrate")[0]["lacking"], [])
        who = ("psql", "-At", "-c", "select current_user, current_setting('default_transaction_read_only')")
        self.assertEqual(c.holdfast(*who).out.strip(), "holdfast_reader|off")
        page = c.start("serve", "--set", "serve.listen=127.0.0.1:0")
        c.until("it serves", lambda: "Open http://" in c.log_of(page))

    def test_a_login_that_may_not_act_as_a_role_is_told(self):
        c = self.collection()
        c.make("createrole")
        c.holdfast("migrate")
        newer = int(c.admin("show server_version_num")) >= 160000
        c.admin("create role anna login; grant holdfast_worker to anna")
        if newer:
            c.admin("grant holdfast_reader to anna with set false")
        c.user = "anna"
        who = ("psql", "-At", "-c", "select current_user, current_setting('default_transaction_read_only')")
        self.assertEqual(c.holdfast(*who).out.strip(), "anna|on")
        refused = c.holdfast("serve", "--set", "serve.listen=127.0.0.1:0", expect=None)
        self.assertIn("grant holdfast_reader", refused.err)

    def test_two_collections_of_a_server_share_no_login(self):
        c = self.collection()
        c.make("createrole")
        c.holdfast("migrate")
        c.holdfast("add", "--bg", "http://a.test/")
        c.admin("create role anna login in role holdfast_reader; create role digger login in role holdfast_worker")
        c.admin("create role press login; create database press owner press")
        c.user = c.database = "press"
        self.assertEqual(c.lines("migrate")[0]["lacking"], [])
        with self.assertRaisesRegex(Failure, "permission denied for database"):
            self.reads(c, "anna")
        c.user = "digger"
        self.assertIn("grant connect on this database", c.holdfast("worker", expect=CONFIGURATION).err)
        c.admin("create role zoe login in role holdfast_reader; grant connect on database press to zoe")
        self.assertEqual(self.reads(c, "zoe"), "0")
        c.user, c.database = "owner", "holdfast"
        self.assertEqual(self.reads(c, "zoe"), "0", "the first is in use, so it is left open, and that is told")
        (open_,) = c.lines("migrate")[0]["lacking"]
        self.assertIn("press", open_["why"])
        self.assertTrue(any(open_["statement"] in line for line in c.lines("doctor", expect=FAILED)[-1]["database"]))
        c.admin(open_["statement"])
        c.admin("grant connect on database holdfast to anna")
        self.assertEqual(c.lines("migrate")[0]["lacking"], [])
        self.assertEqual(c.lines("doctor", expect=None)[-1]["database"], [])
        self.assertEqual(self.reads(c, "anna"), "0")
        with self.assertRaisesRegex(Failure, "permission denied for database"):
            self.reads(c, "zoe")

    def test_a_dump_is_restored_as_the_runbook_says_by_another_owner(self):
        c = self.collection()
        c.make("createrole")
        c.holdfast("migrate")
        c.holdfast("add", "--bg", "http://a.test/")
        ours = int(re.search(r"\) (\d+)", c.server.run("pg_dump", "--version")).group(1))
        if ours < int(c.admin("show server_version_num")) // 10000:
            self.skipTest(f"pg_dump {ours} is older than the server")
        dump = c.server.directory / "holdfast.dump"
        c.server.run("pg_dump", "-Fc", "-d", c.database, "-f", dump)
        c.admin("create role another login createrole; create database restored owner another")
        runbook = (HERE.parents[1] / "deploy/README.md").read_text()
        words = re.search(r"`createdb holdfast && pg_restore ([^`]*) -d holdfast\s+holdfast.dump`", runbook)[1].split()
        c.server.run("pg_restore", *words, "-U", "another", "-d", "restored", dump)
        c.user, c.database = "another", "restored"
        c.admin("set role another; select holdfast.restored('me')", "restored")
        c.holdfast("migrate")
        c.holdfast("check")
        worker = c.start("worker")
        c.until(
            "its page is archived", lambda: c.admin("select count(*) from holdfast.snapshot_sealed", "restored") == "1"
        )
        self.assertIsNone(worker.poll())


class Preconditions(Case):
    def test_all_that_a_server_lacks_is_told_at_once_before_anything_is_done(self):
        c = self.collection()
        c.admin("create role owner login")
        c.admin("create database holdfast encoding 'LATIN1' locale 'C' template template0")
        c.admin("revoke create on database holdfast from public")
        c.admin("alter database holdfast set default_transaction_read_only = on")
        refused = c.holdfast("migrate", expect=CONFIGURATION).err
        told = c.lines("doctor", expect=FAILED)[-1]["database"]
        for what, remedy in (
            ("UTF8, not LATIN1", "template template0"),
            ("the right to create", "grant create on database holdfast to owner"),
            ("may write", "default_transaction_read_only"),
        ):
            self.assertIn(what, refused)
            self.assertIn(remedy, refused)
            self.assertTrue(any(what in line and remedy in line for line in told), told)
        self.assertEqual(c.admin("select to_regnamespace('holdfast') is null", "holdfast"), "t")

    def test_a_database_that_has_all_of_it(self):
        c = self.collection()
        c.make()
        c.holdfast("migrate")
        self.assertEqual(c.lines("doctor", expect=None)[-1]["database"], [])


class Passwords(Case):
    def start(self, secret="one\n"):
        c = self.collection(password="admin")
        c.make("password 'one'")
        c.file = c.path / "password"
        c.file.write_bytes(secret.encode())
        c.file.chmod(0o600)
        return c

    def test_a_file_from_an_editor_for_windows(self):
        c = self.start("one\r\n")
        c.holdfast("migrate", DATABASE_PASSWORD_FILE=c.file)

    def test_a_wrong_password_is_no_wait(self):
        c = self.start("wrong\n")
        self.assertIn("password", c.holdfast("migrate", expect=CONFIGURATION, DATABASE_PASSWORD_FILE=c.file).err)

    def test_a_password_that_is_rotated_under_workers_and_runners(self):
        c = self.start()
        c.holdfast("migrate", DATABASE_PASSWORD_FILE=c.file)
        short = {**SHORT_LEASE, "RUNNER_LEASE": "9s", "RUNNER_HEARTBEAT": "1s", "DATABASE_PASSWORD_FILE": c.file}
        services = [c.start(verb, **short) for verb in ("worker", "runner")]
        running = "select count(*) from holdfast.process where status = 'running' and lease_until > clock_timestamp()"
        c.until("both have joined", lambda: c.admin(running, c.database) == "2")
        c.admin("alter role owner password 'two'")
        c.admin("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'owner'")
        for service in services:
            c.until("it has noticed", lambda service=service: "lost the database" in c.log_of(service))
        refused = "select count(*) from pg_stat_activity where usename = 'owner'"
        c.until("none of its sessions is left", lambda: c.admin(refused) == "0")
        c.until("the leases have expired", lambda: c.admin(running, c.database) == "0", 120)
        self.assertEqual([service.poll() for service in services], [None, None])
        c.file.write_text("two\n")
        c.holdfast("add", "--bg", "http://a.test/", DATABASE_PASSWORD_FILE=c.file)
        sealed = "select count(*) from holdfast.snapshot_sealed"
        c.until("a page is archived", lambda: c.admin(sealed, c.database) == "1")
        self.assertEqual([service.poll() for service in services], [None, None])


class Repairs(Case):
    def test_a_text_that_was_lost_after_the_seal_is_added(self):
        """As when the session ended between the commit of a page and the step beside it."""
        c = self.collection()
        c.make("createrole")
        c.holdfast("migrate")
        c.holdfast("add", "--bg", "http://a.test/", "http://b.test/")
        worker = c.start("worker")
        texts = "select count(*) from holdfast.page_text"
        c.until("both are known to search", lambda: c.admin(texts, c.database) == "2")
        c.admin(
            "set holdfast.change_sealed = on; delete from holdfast.page_text where snapshot_id = (select min(snapshot_id::text)::uuid from"
            " holdfast.page_text); update holdfast.snapshot_sealed set sealed_at = sealed_at - interval '2 days'",
            c.database,
        )
        self.assertIn("search --rebuild", c.holdfast("check", expect=FAILED).out)
        worker.terminate()
        worker.wait()
        c.start("worker")
        c.until("search knows it again", lambda: c.admin(texts, c.database) == "2")
        c.holdfast("check")


@unittest.skipUnless(shutil.which("pgbouncer") or pathlib.Path("/usr/sbin/pgbouncer").exists(), "no PgBouncer")
class Pooled(Case):
    """PgBouncer in transaction mode gives each transaction another session of the server."""

    def test_settings_that_a_pooler_does_not_keep_are_refused_and_others_do_no_harm(self):
        c = self.collection(owner="holdfast")
        c.make("createrole")
        c.holdfast("migrate")
        pooler = PgBouncer(c.path / "pgbouncer", c.server.port)
        self.addCleanup(pooler.stop)
        way = {"DATABASE_URL": f"postgresql://holdfast@127.0.0.1:{pooler.port}/holdfast"}
        c.admin("alter role holdfast set datestyle = 'SQL, DMY'; alter role holdfast set timezone = 'Asia/Kolkata'")
        c.holdfast("add", "--bg", "http://a.test/", **way)
        worker = c.start("worker", **way)
        c.until(
            "a page is archived", lambda: c.admin("select count(*) from holdfast.snapshot_sealed", "holdfast") == "1"
        )
        worker.terminate()
        worker.wait()
        for name, value, wanted in (("bytea_output", "escape", "hex"), ("synchronous_commit", "off", "on")):
            c.admin(f"alter role holdfast set {name} = '{value}'")
            c.admin("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'holdfast'")
            refused = c.holdfast("status", expect=CONFIGURATION, **way).err
            statement = f"alter role holdfast set {name} = '{wanted}'"
            self.assertIn(statement, refused)
            c.holdfast("status")  # without the pooler, it does no harm
            c.admin(statement)
            c.admin("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'holdfast'")
            c.holdfast("status", **way)


class Locks(Case):
    """A transaction of a person stays open."""

    def start(self):
        c = self.collection()
        c.make("createrole")
        c.holdfast("migrate")
        return c

    def hold(self, c, statement):
        person = subprocess.Popen(
            [
                c.server.programs / "psql" if (c.server.programs / "psql").exists() else "psql",
                "-X",
                "-q",
                "-d",
                c.database,
            ],
            env=c.server.environment | {"PGUSER": c.user, "PGAPPNAME": "editor"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(person.wait)
        self.addCleanup(person.kill)
        self.addCleanup(person.stdin.close)
        self.addCleanup(person.stdout.close)
        person.stdin.write(f"begin; {statement};\n\\echo held\n")
        person.stdin.flush()
        while person.stdout.readline().strip() != "held":
            self.assertIsNone(person.poll())

    def test_a_worker_that_waits_says_who_blocks_it(self):
        c = self.start()
        crawl = c.lines("add", "--bg", "http://a.test/")[0]["id"]
        c.go.unlink()
        worker = c.start("worker")
        running = "select count(*) from holdfast.running_hook"
        c.until("its page is running", lambda: c.admin(running, c.database) == "1")
        self.hold(c, "select id from holdfast.crawl for update")
        c.go.touch()
        c.until("it says so", lambda: "worker_turn fails" in c.log_of(worker), 150)
        (line,) = [line for line in c.log_of(worker).splitlines() if "worker_turn fails" in line]
        self.assertIn("editor, owner", line)
        self.assertIn("select id from holdfast.crawl for update", line)
        self.assertIn("editor, owner", c.holdfast("why", crawl).out)
        self.assertIn("editor, owner", c.admin("select what from holdfast.v_stuck where kind = 'lock'", c.database))

    def test_a_diagnosis_does_not_wait_for_locked_tables(self):
        c = self.start()
        crawl = c.lines("add", "--bg", "http://a.test/")[0]["id"]
        self.hold(c, "lock table holdfast.crawl, holdfast.snapshot, holdfast.process")
        (answer,) = c.lines("why", crawl)
        self.assertEqual(answer["kind"], "lock")
        self.assertIn("editor, owner", answer["reason"])
        for verb in ("status", "check"):
            self.assertIn("editor, owner", c.holdfast(verb, expect=75).err)


# What an administrator does, how it is undone, the kind of the row in v_stuck, words of `why`; and whether the server
# answers with an error, which the worker logs when it begins and when it ends.
FAILS = """create function public.fails() returns trigger language plpgsql as
  $$ begin raise exception 'broken on purpose' using errcode = '{}'; end $$;
create trigger fails before insert on holdfast.archive_result for each row execute function public.fails()"""
WAITS = {
    "disk full": ("53100", "make room on the disk of the database server"),
    "out of memory": ("53200", "needs more memory; for shared memory, a greater max_locks_per_transaction"),
    "no more temporary files": ("53400", "temp_file_limit"),
    "a transaction that takes too long": ("25P04", "transaction_timeout"),
    "queue of notifications full": ("54000", "pg_notification_queue_usage()"),
    "an error that no list names": ("XX000", "See the log of the database server"),
    "input and output": ("58030", "the disk of the database server reports errors"),
    "a grant that was taken away": ("42501", "grant the missing privilege"),
    "cancelled": ("57014", "statement_timeout"),
}


class Waits(Case):
    """Whatever the program waits for at its database has one reason, in `why`, in v_stuck and in the log."""

    def start(self):
        c = self.collection()
        c.make("createrole")
        c.holdfast("migrate")
        c.crawl = c.lines("add", "--bg", *(f"http://{name}.test/" for name in "abcdefghijkl"))[0]["id"]
        return c

    def stuck(self, c):
        return c.admin(
            "select string_agg(kind || ': ' || what || ' ' || reason, E'\n') from holdfast.v_stuck", c.database
        )

    def test_a_call_that_fails_says_so_once_and_when_it_works_again(self):
        c = self.start()
        worker = c.start("worker", **SHORT_LEASE, HOLDFAST_WORKER_SNAPSHOTS="1")
        sealed = "select count(*) from holdfast.snapshot_sealed"
        for number, (name, (state, way_out)) in enumerate(WAITS.items(), 1):
            with self.subTest(name):
                c.admin(FAILS.format(state), c.database)
                crawl = c.lines("add", "--bg", f"http://page{number}.test/")[0]["id"]
                c.until(f"{name} is the reason", lambda: "call: " in self.stuck(c) and way_out in self.stuck(c))
                self.assertIn("broken on purpose", self.stuck(c))
                for word in ("broken on purpose", way_out):
                    self.assertIn(word, c.holdfast("why", crawl).out)
                before = int(c.admin(sealed, c.database))
                c.admin("drop function public.fails() cascade", c.database)
                c.until("pages are sealed again", lambda: int(c.admin(sealed, c.database)) > before)
                c.until("that is over", lambda: "call: " not in self.stuck(c))
                log = c.log_of(worker)
                self.assertEqual(log.count("the database call worker_turn fails: broken on purpose"), number, log)
                self.assertEqual(log.count("the database call worker_turn works again"), number, log)
        self.assertIsNone(worker.poll())
        self.assertEqual(
            c.admin("select string_agg(distinct outcome, ',') from holdfast.snapshot_sealed", c.database), "succeeded"
        )

    def test_a_commit_that_waits_for_a_standby_is_no_lock_of_ours(self):
        c = self.start()
        c.start("worker", **SHORT_LEASE)
        c.admin("alter system set synchronous_standby_names = 'gone'")
        c.admin("select pg_reload_conf()")
        c.until("it is the reason", lambda: "standby: " in self.stuck(c))
        self.assertNotIn("lock: ", self.stuck(c))
        for word in ("wait for a synchronous standby (synchronous_standby_names: gone), and none is connected",):
            self.assertIn(word, c.holdfast("why", c.crawl).out)
            self.assertIn(word, c.holdfast("doctor", expect=FAILED).out)
        c.admin("set synchronous_commit = local; alter system reset synchronous_standby_names")
        c.admin("select pg_reload_conf()")
        c.until("that is over", lambda: "standby: " not in self.stuck(c))

    def test_a_worker_whose_login_cannot_work_is_told_from_the_other_side(self):
        c = self.start()
        c.admin("create role digger login; grant holdfast_worker to digger")
        c.user = "digger"
        worker = c.start("worker", **SHORT_LEASE)
        c.user = "owner"
        sealed = "select count(*) from holdfast.snapshot_sealed"
        done = "select bool_and(status = 'sealed') from holdfast.v_crawl"
        c.until("all is sealed", lambda: c.admin(done, c.database) == "t")
        for what, (take, back) in {
            "has no role of Holdfast": ("revoke holdfast_worker from digger", "grant holdfast_worker to digger"),
            "may not log in": ("alter role digger nologin", "alter role digger login"),
            "no longer exists": ("drop role digger", "create role digger login in role holdfast_worker"),
        }.items():
            with self.subTest(what):
                c.go.unlink()
                crawl = c.lines("add", "--bg", f"http://{what[-3:].strip()}.test/")[0]["id"]
                running = f"select count(*) from holdfast.v_running where crawl_id = '{crawl}'"
                c.until("its page is running", lambda running=running: c.admin(running, c.database) == "1")
                c.admin(take)
                c.admin("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'digger'")
                said = f"the login digger of {c.admin('select max(label) from holdfast.process', c.database)} {what}"
                c.until(f"{said} is the reason", lambda said=said: f"login: {said}" in self.stuck(c))
                self.assertIn(said, c.holdfast("why", crawl).out)
                self.assertIn(said, c.holdfast("doctor", expect=FAILED).out)
                before = int(c.admin(sealed, c.database))
                c.admin(back)
                c.go.touch()
                c.until("pages are sealed again", lambda before=before: int(c.admin(sealed, c.database)) > before)
                c.until("that is over", lambda: "login: " not in self.stuck(c))
        self.assertIsNone(worker.poll())

    def test_a_certificate_that_is_not_trusted_is_logged_once_and_when_it_is_over(self):
        c = self.start()
        place = c.server.directory

        def renew():
            subprocess.run(
                [
                    "openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "rsa:2048",
                    "-nodes",
                    "-keyout",
                    place / "key",
                    "-out",
                    place / "crt",
                ]
                + ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                check=True,
                capture_output=True,
            )
            for name in ("key", "crt"):
                give(place / name, c.server.identity)

        renew()
        trusted = c.path / "trusted"
        shutil.copy(place / "crt", trusted)
        c.server.restart(ssl="on", ssl_cert_file=place / "crt", ssl_key_file=place / "key")
        url = c.url().replace("sslmode=disable", f"sslmode=verify-full&sslrootcert={trusted}")
        worker = c.start("worker", **SHORT_LEASE, DATABASE_URL=url)
        sealed = "select count(*) from holdfast.snapshot_sealed"
        c.until("it works", lambda: c.admin(sealed, c.database) != "0")
        renew()
        c.admin("select pg_reload_conf()")
        end = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like 'holdfast%'"
        c.until("it has noticed", lambda: c.admin(end) and "certificate of the server" in c.log_of(worker))
        c.until("so has everyone", lambda: "sends no heartbeats" in self.stuck(c))
        shutil.copy(place / "crt", trusted)
        c.until("it connects again", lambda: "connect works again" in c.log_of(worker))
        self.assertEqual(c.log_of(worker).count("the database call connect fails"), 1)
        self.assertIsNone(worker.poll())

    def test_rows_that_a_person_has_locked_are_passed_over_and_why_says_so(self):
        c = self.start()
        Locks.hold(self, c, "select from holdfast.crawl_queue for update; select from holdfast.crawl for update")
        c.start("worker", **SHORT_LEASE)
        c.until("it is the reason", lambda: "lock: pid " in self.stuck(c))
        self.assertIn("editor, owner", c.holdfast("why", c.crawl).out)

    def test_a_prepared_transaction_that_keeps_locks_is_named(self):
        c = self.start()
        c.server.restart(max_prepared_transactions="2")
        c.server.psql(c.database, "-c", "begin; update holdfast.crawl set label = label; prepare transaction 'left'")
        c.start("worker", **SHORT_LEASE)
        c.until("it is the reason", lambda: "lock: the prepared transaction 'left' of admin" in self.stuck(c))
        self.assertIn("rollback prepared 'left'", self.stuck(c))
        c.server.psql(c.database, "-c", "rollback prepared 'left'")
        c.until("that is over", lambda: "lock: " not in self.stuck(c))

    def test_sessions_that_were_ended_are_no_reason_once_there_are_others(self):
        c = self.start()
        worker = c.start("worker", **SHORT_LEASE)
        beat = "select max(heartbeat_at) from holdfast.process"
        ours = "from pg_stat_activity where application_name like 'holdfast%'"
        c.until("it runs", lambda: int(c.admin(f"select count(*) {ours}")) > 1 and c.admin(beat, c.database).strip())
        c.admin(f"select count(pg_terminate_backend(pid)) {ours}")
        before = c.admin(beat, c.database)
        c.until("it runs again", lambda: c.admin(beat, c.database) != before)
        self.assertNotIn("select 1", self.stuck(c) + c.log_of(worker))


if __name__ == "__main__":
    arguments = suites.read(suites.parser(__doc__).parse_args())
    sys.exit(suites.run(arguments, sys.modules[__name__]))
