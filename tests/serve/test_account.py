"""Names with passwords on the page, and one's own tokens: who signs in, what is recorded, and what ends."""

import concurrent.futures
import contextlib
import http.client
import json
import pty
import os
import re
import urllib.parse

from harness.case import CONFIGURATION, REFUSED, USAGE, Case

PASSWORD, OTHER = "correct horse battery", "staple of another horse"


class Accounts(Case):
    def setUp(self):
        self.place = self.place(held=True)
        self.place.holdfast("account", "add", "anna", "--role", "operator", given=PASSWORD + "\n")
        file = self.place.path / "bert.password"
        file.write_text(OTHER + "\nmore\n")
        file.chmod(0o600)
        self.place.holdfast("account", "add", "bert", "--password-file", str(file))
        self.script = self.place.run("token", "add", "script", "--role", "operator").records[0]["token"]
        process = self.place.start("--set", "serve.listen=127.0.0.1:0", "--set", "serve.guest=none", "serve")

        def end():
            process.terminate()
            self.place.finish(process)

        self.addCleanup(end)
        self.port = urllib.parse.urlsplit(process.stdout.readline().split()[1]).port

    def ask(self, method, path, body=None, address="127.0.0.1", **headers):
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(address, 0))
        form = body is not None and not path.startswith("/api/")
        kind = "application/x-www-form-urlencoded" if form else "application/json"
        data = urllib.parse.urlencode(body) if form else json.dumps(body) if body is not None else None
        wire.request(method, path, data, {"Content-Type": kind} | headers)
        answer = wire.getresponse()
        text = answer.read().decode()
        wire.close()
        return answer.status, text, answer.headers

    def sign_in(self, name, password, address="127.0.0.1", status=303):
        body = {"name": name, "password": password, "next": "/tokens"}
        found, text, headers = self.ask("POST", "/sign-in", body, address)
        self.assertEqual(found, status, text)
        cookie = (headers["Set-Cookie"] or "").split(";")[0]
        return {"Cookie": cookie} if cookie else headers

    def rows(self, sql):
        return self.place.holdfast("psql", "--role", "owner", "-Atqc", sql).out.split("\n")[:-1]

    def make(self, who, name, role="operator", status=200):
        found, text, _ = self.ask("POST", "/do/addToken", {"name": name, "role": role, "back": "/tokens"}, **who)
        self.assertEqual(found, status, text)
        return {"Authorization": f"Bearer {re.search('hf_[0-9a-f]{64}', text)[0]}"} if status == 200 else text

    def add(self, who):
        return self.ask("POST", "/api/v1/crawls", {"urls": ["https://a.test/"]}, **who)[0]

    def is_known(self, who):
        return self.ask("GET", "/tokens", **who)[0] == 200

    def test_a_name_and_its_password_sign_in_until_the_sign_out(self):
        self.assertIn('name="password"', self.ask("GET", "/")[1])
        self.sign_in("anna", OTHER, status=401)
        self.sign_in("anna", PASSWORD[:-1], status=401)
        self.sign_in("anna", PASSWORD + "\0", status=400)
        anna = self.sign_in(" Anna ", PASSWORD)
        self.assertIn(">anna</a>", self.ask("GET", "/", **anna)[1])
        self.assertEqual(self.add(anna), 201)
        self.assertEqual(self.rows("select created_by from holdfast.v_crawl"), ["account anna"])
        self.assertEqual(self.ask("POST", "/do/pauseAll", {}, Origin="https://evil.test", **anna)[0], 403)
        self.assertEqual(self.ask("POST", "/sign-in", {"name": "anna"}, Origin="https://evil.test")[0], 403)
        again = self.sign_in("anna", PASSWORD)
        self.assertEqual(self.ask("POST", "/sign-out", {}, **anna)[0], 303)
        self.assertEqual((self.is_known(anna), self.is_known(again)), (False, True))
        kept = self.place.run("psql", "--role", "owner", "-Atqc", "select t::text from holdfast.account t").out
        self.assertIn("anna", kept)
        for secret in (PASSWORD, OTHER, anna["Cookie"].partition("=")[2]):
            self.assertNotIn(secret, kept)
            self.assertNotIn(secret, "".join(self.rows("select t::text from holdfast.api_token t")))
        self.assertNotIn("$y$", self.place.run("account", "list").out)

    def test_a_user_changes_the_own_password(self):
        def change(who, old, new, status, **headers):
            found, text, _ = self.ask("POST", "/password", {"old": old, "new": new}, **who, **headers)
            self.assertEqual(found, status, text)
            return text

        self.assertNotIn('action="/password"', self.ask("GET", "/tokens", Authorization=f"Bearer {self.script}")[1])
        bert, elsewhere = self.sign_in("bert", OTHER), self.sign_in("bert", OTHER)
        self.assertIn('action="/password"', self.ask("GET", "/tokens", **bert)[1])
        anna = self.sign_in("anna", PASSWORD)
        token = self.make(anna, "laptop")
        change({}, OTHER, "some new password", 401)
        change({"Authorization": f"Bearer {self.script}"}, OTHER, "some new password", 403)
        change(token, PASSWORD, "some new password", 403)  # of an account, and no session
        change(bert, OTHER, "some new password", 403, Origin="https://evil.test")
        change(bert, "wrong" + OTHER, "some new password", 403)
        self.assertIn("10 to 500 bytes", change(bert, OTHER, "short", 400))
        self.assertTrue(self.is_known(bert))
        change(bert, OTHER, "some new password", 200)
        self.assertEqual([self.is_known(one) for one in (bert, elsewhere, anna)], [False, False, True])
        self.sign_in("bert", OTHER, status=401)
        self.sign_in("bert", "some new password")
        self.assertEqual(self.rows("select role from holdfast.account where name = 'bert'"), ["reader"])
        change(anna, PASSWORD, "some new password", 200)
        self.assertTrue(self.is_known(token))  # it stays
        bert = self.sign_in("bert", "some new password")
        for _ in range(5):
            change(bert, OTHER, OTHER, 403)
        self.assertIn("Too many", change(bert, OTHER, OTHER, 429))

    def test_a_reader_reads(self):
        bert = self.sign_in("bert", OTHER)
        self.assertTrue(self.is_known(bert))
        self.assertEqual(self.add(bert), 403)
        self.make(bert, "bert-own", status=403)
        # An account that becomes a reader keeps no token that may more.
        anna = self.make(self.sign_in("anna", PASSWORD), "phone")
        self.assertEqual(self.add(anna), 201)
        self.place.holdfast("account", "add", "anna", "--role", "reader", given=PASSWORD + "\n")
        self.assertEqual(self.add(anna), 403)

    def test_wrong_passwords_are_counted_by_the_database(self):
        for name in ("anna", "nobody"):
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                body = {"name": name, "password": "wrong"}
                asked = [pool.submit(self.ask, "POST", "/sign-in", body, "127.0.3.1") for _ in range(12)]
                found = sorted(one.result()[0] for one in asked)
            self.assertEqual(found, [401] * 5 + [429] * 7, name)
            headers = self.sign_in(name, PASSWORD, "127.0.3.1", 429)
            self.assertGreater(int(headers["Retry-After"]), 60)
        self.sign_in("anna", PASSWORD, "127.0.3.2")  # from elsewhere
        self.rows("update holdfast.account_attempt set at = at - interval '16 minutes'")
        self.sign_in("anna", PASSWORD, "127.0.3.1")
        self.assertEqual(self.rows("select * from holdfast.account_attempt"), [])
        for i in range(30):
            self.sign_in(f"name{i}", "wrong", "127.0.3.4", 401)
        self.sign_in("anna", PASSWORD, "127.0.3.4", 429)

    def test_sessions_and_tokens_end_with_their_account(self):
        anna = self.sign_in("anna", PASSWORD)
        token = self.make(anna, "laptop")
        self.place.holdfast("account", "add", "anna", "--role", "operator", given=OTHER + "\n")
        self.assertEqual((self.is_known(anna), self.is_known(token)), (False, True))
        self.sign_in("anna", PASSWORD, status=401)
        anna = self.sign_in("anna", OTHER)
        self.assertTrue(self.place.run("account", "remove", "anna").records[0]["changed"])
        self.assertEqual((self.is_known(anna), self.is_known(token)), (False, False))
        self.sign_in("anna", OTHER, status=401)
        self.assertFalse(self.place.run("account", "remove", "anna").records[0]["changed"])
        self.place.holdfast("account", "remove", "bert")
        self.assertNotIn('name="password"', self.ask("GET", "/sign-in")[1])

    def test_a_user_makes_and_revokes_own_tokens_and_no_others(self):
        anna = self.sign_in("anna", PASSWORD)
        token = self.make(anna, "laptop")
        self.assertEqual(self.add(token), 201)
        self.assertEqual(self.rows("select distinct created_by from holdfast.v_crawl"), ["account anna"])
        shown = self.ask("GET", "/tokens", **anna)[1]
        self.assertIn("laptop", shown)
        self.assertNotIn(">script<", shown)
        self.assertNotIn(token["Authorization"].split()[1], shown)
        self.assertIn("already", self.make(anna, "laptop", status=422))
        self.assertIn("link-1", self.make(anna, "link-1", status=422))
        back = {"id": "script", "back": "/tokens"}
        status, text, _ = self.ask("POST", "/do/revokeToken", back, **anna)
        self.assertEqual(status, 422)
        self.assertIn("you have no token", text)
        self.assertEqual(self.ask("POST", "/do/revokeToken", back | {"id": "laptop"}, **anna)[0], 303)
        self.assertFalse(self.is_known(token))
        self.assertIn("revoked by account anna", self.ask("GET", "/tokens", **anna)[1])
        # A program's token makes others: they end with it.
        script = {"Authorization": f"Bearer {self.script}"}
        made = [script]
        for name in ("one", "two"):
            body = {"name": name, "role": "operator", "expires": "1d"}
            status, text, _ = self.ask("POST", "/api/v1/tokens", body, **made[-1])
            self.assertEqual(status, 200, text)
            made.append({"Authorization": f"Bearer {json.loads(text)['token']}"})
        self.assertEqual([self.is_known(one) for one in made], [True] * 3)
        body, once = {"name": "once", "role": "operator", "expires": "1d"}, script | {"Idempotency-Key": "once"}
        self.assertEqual(self.ask("POST", "/api/v1/tokens", body, **once)[0], 200)
        status, text, _ = self.ask("POST", "/api/v1/tokens", body, **once)
        self.assertEqual((status, "already" in text, "token" in json.loads(text)), (422, True, False), text)
        self.place.holdfast("token", "revoke", "script")
        self.assertEqual([self.is_known(one) for one in made], [False] * 3)

    def test_a_password_is_typed_unseen_or_read_from_a_closed_file(self):
        run = self.place.run
        self.check_error(run("account", "add", "carl", given="short\n"), USAGE, "10 to 500")
        self.check_error(run("account", "add", "Carl", given=PASSWORD), REFUSED, "Carl")
        self.check_error(run("account", "add", "carl", "--role", "owner", given=PASSWORD), USAGE, "owner")
        file = self.place.path / "open.password"
        file.write_text(PASSWORD)
        file.chmod(0o644)
        self.check_error(
            run("account", "add", "carl", "--password-file", str(file)), CONFIGURATION, "every user", "chmod"
        )
        main, side = pty.openpty()
        process = self.place.start("account", "add", "carl", stdin=side)
        os.close(side)
        said = b""
        while not said.endswith(b": "):
            said += os.read(process.stderr.fileno(), 1000)
        self.assertIn(b"Password of carl", said)
        os.write(main, PASSWORD.encode() + b"\n")
        self.assertEqual(self.place.finish(process).code, 0)
        with contextlib.suppress(OSError):  # nothing is left to read
            self.assertNotIn(PASSWORD.encode(), os.read(main, 1000))
        os.close(main)
        self.sign_in("carl", PASSWORD)


if __name__ == "__main__":
    import unittest

    unittest.main()
