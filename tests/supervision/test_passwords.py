"""HTTP Basic and Digest of a real Apache: a persona's login, on three workers; the password changes on the server, which
is noticed, and what waits goes on with the new one. No password and no digest of it stands in the archive."""

import base64
import gzip
import hashlib
import json
import unittest

from harness.apache import HAS_APACHE, Apache
from harness.wait import until
from test_signed_out import BUILT_IN, HAS_BROWSER, OK
from worker import WorkerCase

FIRST, SECOND = "seeded first password 1", "seeded second password 2"


@unittest.skipUnless(HAS_BROWSER and HAS_APACHE, "no browser or no Apache")
class Passwords(WorkerCase):
    def test_on_three_workers(self):
        home = self.worker_place(WORKER_SNAPSHOTS="1")
        home.environment["HOLDFAST_PLUGINS_PATH"] = f"{home.plugins}:{BUILT_IN}"
        apache = Apache(FIRST)
        self.addCleanup(apache.close)

        def sign_in(password):
            file = home.path / "state"
            login = {"origin": apache.url, "username": "me", "password": password}
            file.write_text(json.dumps({"httpCredentials": [login]}))
            result = home.run("persona", "import", "staff", file)
            file.unlink()
            self.assertEqual(result.code, OK, str(result))

        def add(count, name):
            result = home.run("add", *apache.pages(count, name), "--bg", "--persona", "staff", "-p", "browser,title")
            self.assertEqual(result.code, OK, str(result))

        def sealed():
            return int(home.sql("select count(*) from holdfast.snapshot_sealed")[0][0])

        sign_in(FIRST)
        home.work()
        for number in (2, 3):
            log = open(home.path / f"worker{number}.log", "w")
            self.addCleanup(log.close)
            worker = home.start("worker", stdout=log, stderr=log)
            self.addCleanup(home.finish, worker)
            self.addCleanup(worker.terminate)
        workers = "select count(*) from holdfast.process where process_type = 'worker' and status = 'running'"
        until("three workers run", lambda: home.sql(workers) == [["3"]])
        took = "select count(distinct owner_id) from holdfast.snapshot_sealed"
        for number in range(10):  # until each worker has had one
            before = sealed()
            add(3, f"a{number}-")
            until("they are sealed", lambda: sealed() == before + 6, 180)
            if home.sql(took) == [["3"]]:
                break
        self.assertEqual(home.sql(took), [["3"]])
        apache.set_password(SECOND)
        before = sealed()
        add(2, "b")
        out = "select signed_out_reason from holdfast.v_persona"
        until("it is noticed", lambda: home.sql(out) == [["the site answers HTTP 401"]], 120)
        sign_in(SECOND)
        until("they are sealed", lambda: sealed() == before + 4, 180)
        self.assertEqual(home.sql("select distinct outcome from holdfast.snapshot_sealed"), [["succeeded"]])
        titles = {title for (title,) in home.sql("select title from holdfast.v_snapshot")}
        self.assertLessEqual({"/basic/b0", "/digest/b0", "/basic/b1", "/digest/b1"}, titles)
        kept = b"".join(
            gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            for file in (home.data / "archive").rglob("*")
            if file.is_file()
        )
        for password in (FIRST, SECOND):
            code = base64.b64encode(f"me:{password}".encode())
            digest = hashlib.md5(f"me:members:{password}".encode()).hexdigest().encode()
            for secret in (password.encode(), code, digest):
                self.assertNotIn(secret, kept)
        self.assertNotRegex(kept, rb"(?im)^Authorization:")


if __name__ == "__main__":
    unittest.main()
