"""A database that is not holdfast's own: unreachable, closed to us, of another version; and queueing for a cluster."""

import unittest

from harness.case import CONFIGURATION, OK, UNAVAILABLE, Case, Database
from harness.wait import until

URL = "https://site.test/page"


class Unreachable(Case):
    def test_no_server_there(self):
        home = self.place(filled=False)
        for url in ("postgresql://holdfast@127.0.0.1:1/holdfast", f"host={home.path} user=holdfast dbname=holdfast"):
            for verb in (["add", "--bg", URL], ["status"], ["worker"], ["migrate"]):
                with self.subTest(url=url, verb=verb):
                    result = home.run("--database", url, *verb)
                    self.check_error(result, UNAVAILABLE, "cannot connect to the database", "database.url")
        self.assertFalse(home.data.exists())

    def test_no_connection_string(self):
        home = self.place(filled=False)
        for url in ("postgresql://[nonsense", "no=such option=here"):
            with self.subTest(url=url):
                self.check_error(home.run("--database", url, "status"), CONFIGURATION)


class Reachable(Case):
    @classmethod
    def setUpClass(cls):
        cls.database = Database()

    @classmethod
    def tearDownClass(cls):
        cls.database.close()

    def test_what_the_server_refuses(self):
        home = self.place(filled=False)
        for url, words in (
            (self.database.url(password="wrong"), ["password authentication failed"]),
            (self.database.url(password=""), ["password"]),
            (self.database.url("nosuch"), ["nosuch"]),
            (self.database.url(user="stranger"), ["stranger"]),
        ):
            with self.subTest(url=url):
                result = home.run("--database", url, "status")
                self.check_error(result, CONFIGURATION, *words)
                self.assertNotIn("wrong", result.err.replace("password authentication failed", ""))
        self.assertFalse(home.data.exists())

    def test_an_empty_database_wants_to_be_migrated(self):
        home = self.place(filled=False)
        self.database.sql("create database empty")
        url = self.database.url("empty")
        for verb in (["add", "--bg", URL], ["status"], ["run"], ["list"]):
            with self.subTest(verb=verb):
                self.check_error(
                    home.run("--database", url, *verb), UNAVAILABLE, "no Holdfast schema", "holdfast migrate"
                )
        self.assertEqual(
            self.database.sql("select count(*) from pg_namespace where nspname = 'holdfast'", "empty"), "0"
        )

    def test_a_cluster_queues_and_its_worker_works(self):
        home = self.place(filled=False)
        self.database.sql("create database cluster")
        secret = home.path / "secret"
        secret.write_text(Database.PASSWORD + "\n")
        secret.chmod(0o600)
        env = {
            "HOLDFAST_DATABASE_URL": self.database.url("cluster", password=""),
            "HOLDFAST_DATABASE_PASSWORD_FILE": str(secret),
        }
        first = home.holdfast("migrate", env=env)
        self.assertNotEqual(first.records[0]["applied"], [])
        self.assertEqual(home.run("migrate", env=env).records[0]["applied"], [])
        crawl = home.run("add", URL, env=env)
        self.assertEqual((crawl.code, crawl.records[0]["status"]), (OK, "queued"), str(crawl))
        self.assertEqual(home.attempts(), [])
        home.hook("secret", "on_Snapshot__20_env.sh", "env >env.txt")
        worker = home.start("worker", env=env)
        until("it is sealed", lambda: self.database.sql("select status from holdfast.v_crawl", "cluster") == "sealed")
        waited = home.run("add", "--wait", "https://site.test/other", env=env)
        self.assertEqual((waited.code, waited.records[-1]["outcome"]), (OK, "succeeded"), str(waited))
        worker.terminate()
        result = home.finish(worker)
        self.assertEqual(result.code, OK, str(result))
        self.assertEqual(len(home.attempts()), 2)
        self.assertFalse((home.data / "postgres").exists())
        for attempt in home.attempts():  # hooks hear nothing of the database
            text = (attempt / "secret/env.txt").read_text()
            self.assertNotIn("correct", text)
            self.assertNotIn("DATABASE", text)
        config = home.run("config", env={"HOLDFAST_DATABASE_URL": self.database.url("cluster")})
        self.assertNotIn("correct", config.out)
        self.assertEqual(self.database.sql("select count(*) from holdfast.check_invariants()", "cluster"), "0")
        self.assertEqual(
            self.database.sql("select count(*) from holdfast.v_worker where status = 'running'", "cluster"), "0"
        )

    def test_a_missing_password_file(self):
        home = self.place(filled=False)
        env = {"HOLDFAST_DATABASE_PASSWORD_FILE": "/no/such/secret"}
        self.check_error(
            home.run("--database", self.database.url(), "status", env=env), CONFIGURATION, "/no/such/secret"
        )

    def test_secrets_that_every_user_can_read(self):
        home = self.place(filled=False)
        open_to_all = home.path / "secret"
        open_to_all.write_text("e" * 64 + "\n")
        open_to_all.chmod(0o644)
        for setting, verb in (
            ("database.password_file", ["--database", self.database.url(), "status"]),
            ("persona.key_file", ["persona", "export", "press"]),
            ("webhooks.secret_file", ["worker"]),
        ):
            result = home.run(*verb, env={"HOLDFAST_" + setting.upper().replace(".", "_"): str(open_to_all)})
            with self.subTest(setting):
                self.check_error(result, CONFIGURATION, setting, "can be read by every user", f"chmod o= {open_to_all}")


if __name__ == "__main__":
    unittest.main()
