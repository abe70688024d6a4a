"""holdfast psql: the role in which it begins, its exit code, and what it leaves running."""

import unittest

from harness.case import OK, PROGRAM, REFUSED, UNAVAILABLE, Case, Database
from harness.wait import until
from harness.worker import processes, read

URL = "https://site.test/page"


class Embedded(Case):
    def setUp(self):
        self.home = self.place()

    def psql(self, *arguments, **options):
        return self.home.run("psql", *arguments, **options)

    def query(self, text, *arguments):
        result = self.psql(*arguments, "-XAtc", text)
        self.assertEqual(result.code, OK, str(result))
        return result.out.strip()

    def test_without_a_collection(self):
        psql = self.place(filled=False).run("psql", "-c", "select 1")
        self.check_error(psql, UNAVAILABLE, "there is no collection")

    def test_roles(self):
        self.assertEqual(self.home.run("add", URL).code, OK)
        self.assertEqual(self.query("select current_user, count(*) from v_snapshot"), "holdfast_reader|1")
        self.assertEqual(self.query("reset role; select current_user"), "RESET\nholdfast_reader")
        for change in ("delete from snapshot", "select crawl_priority(id, 10, 'me') from v_crawl"):
            result = self.psql("-c", change)
            self.assertEqual(result.code, 1, str(result))
            self.assertIn("permission denied", result.err)
        self.assertEqual(
            self.query("select current_user, label from v_crawl", "--role", "operator"), "holdfast_operator|"
        )
        self.assertEqual(self.query("select crawl_keep(id, '1 day') > now() from v_crawl", "--role", "operator"), "t")
        self.assertEqual(self.query("select current_user", "--role", "owner"), "holdfast")
        result = self.psql("--role", "owner", "-c", "delete from snapshot")
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("set holdfast.change_sealed = on", result.err)
        self.assertEqual(self.query("select count(*) from v_snapshot"), "1")
        self.assertIsNone(self.home.server_pid())

    def test_exit_code_and_input(self):
        self.assertEqual(self.home.run("add", "--bg", URL).code, OK)
        good = self.psql("-XAt", given="select url from v_snapshot limit 1;\nselect 'read';\n")
        self.assertEqual((good.code, good.out.split()[-1]), (OK, "read"), str(good))
        self.assertEqual(self.psql("-X", "-v", "ON_ERROR_STOP=1", given="select nonsense;\n").code, 3)

    def test_told_to_end_it_ends_psql_and_the_server(self):
        self.assertEqual(self.home.run("add", "--bg", URL).code, OK)
        process = self.home.start("psql", "-c", "select pg_sleep(600)")

        def sleeping():
            """Pids of psql, which may be a script that starts another program of this name."""
            found = []
            for pid in processes():
                words = read(f"/proc/{pid}/cmdline")
                if b"psql\0-c\0select pg_sleep" in words and not words.startswith(PROGRAM.encode()):
                    if str(self.home.path).encode() in read(f"/proc/{pid}/environ"):
                        found.append(pid)
            return found

        until("psql runs", sleeping)
        process.terminate()
        result = self.home.finish(process)
        self.assertEqual(result.code, 128 + 15, str(result))
        self.assertEqual(sleeping(), [])
        self.assertIsNone(self.home.server_pid())


class Elsewhere(Case):
    @classmethod
    def setUpClass(cls):
        cls.database = Database()

    @classmethod
    def tearDownClass(cls):
        cls.database.close()

    def psql(self, user, *arguments, **options):
        return self.place(filled=False).run(
            "--database", self.database.url("people", user=user), "psql", *arguments, **options
        )

    def test_logins(self):
        self.database.sql("create database people")
        self.assertEqual(self.place(filled=False).run("--database", self.database.url("people"), "migrate").code, OK)
        for user, role in (("anna", "holdfast_reader"), ("bert", "holdfast_operator")):
            self.database.sql(f"create role {user} login password '{Database.PASSWORD}'; grant {role} to {user}")
        # Nothing is left to do, which no other login than the owner's could.
        for user in ("anna", "bert"):
            done = self.place(filled=False).run("--database", self.database.url("people", user=user), "migrate")
            self.assertEqual((done.code, done.records[0]["applied"]), (OK, []), str(done))
        asked = "select current_user, current_setting('transaction_read_only'), count(*) from v_crawl"
        reader = self.psql("anna", "-XAtc", asked)
        self.assertEqual(reader.out.strip(), "holdfast_reader|off|0", str(reader))
        # A login that is no reader gets a session that reads only.
        operator = self.psql("bert", "-XAtc", asked)
        self.assertEqual(operator.out.strip(), "bert|on|0", str(operator))
        self.check_error(self.psql("anna", "--role", "operator", "-c", "select 1"), REFUSED, "holdfast_operator")
        steering = self.psql("bert", "--role", "operator", "-XAtc", "select collection_pause('bert', 'a break')")
        self.assertEqual(steering.out.strip(), "1", str(steering))
        missing = self.psql("anna", "-c", "select 1", env={"PATH": "/nonexistent"})
        self.check_error(missing, UNAVAILABLE, "cannot run psql")


if __name__ == "__main__":
    unittest.main()
