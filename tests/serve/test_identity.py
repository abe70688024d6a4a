"""Users whom a reverse proxy names, as oauth2-proxy and Authelia do: their roles, and who is believed."""

import http.client
import http.server
import json
import re
import threading
import urllib.parse

from harness.case import CONFIGURATION, Case

TRUSTED = "127.0.9.1"  # the address from which the proxy connects
FIXED = ("--set", f"serve.trusted_proxies={TRUSTED}", "--set", "serve.user_header=X-Forwarded-Email")
GROUPS = ("--set", "serve.groups_header=X-Forwarded-Groups", "--set", "serve.operator_groups=archivists,site ops")


class SignedIn(http.server.BaseHTTPRequestHandler):
    """A proxy that takes the user from its cookie and removes what the client says of itself."""

    protocol_version = "HTTP/1.1"
    USERS = {"anna": ("anna@example.test", "archivists,staff"), "bert": ("bert@example.test", "staff")}

    def do_GET(self):
        user = self.USERS.get((self.headers["Cookie"] or "").partition("proxy=")[2])
        if user is None:
            return self.send_error(401)
        named = ("x-forwarded-email", "x-forwarded-groups", "connection")
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        wire = http.client.HTTPConnection("127.0.0.1", self.server.target, source_address=(TRUSTED, 0))
        wire.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in named:
                wire.putheader(name, value)
        # An identity token of its own, as oauth2-proxy passes it on.
        for name, value in zip(("X-Forwarded-Email", "X-Forwarded-Groups", "Authorization"), (*user, "Bearer eyJ0")):
            wire.putheader(name, value)
        wire.endheaders(body)
        answer = wire.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        wire.close()

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Identity(Case):
    def serve(self, *settings):
        place = self.place(held=True)
        place.holdfast("token", "add", "anna", "--role", "operator")
        self.token = place.run("token", "add", "script", "--role", "operator").records[0]["token"]
        listens = ("--set", "serve.listen=127.0.0.1:0", "--set", "serve.guest=none")
        process = place.start(*listens, *settings, "serve")

        def end():
            process.terminate()
            place.finish(process)

        self.addCleanup(end)
        self.port = urllib.parse.urlsplit(process.stdout.readline().split()[1]).port
        return place

    def ask(self, method, path, headers, body=b"", address=TRUSTED, port=None):
        """Headers are pairs, so that one may come twice."""
        wire = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60, source_address=(address, 0))
        wire.putrequest(method, path)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            wire.putheader(name, value)
        wire.endheaders(body)
        answer = wire.getresponse()
        text = answer.read().decode()
        wire.close()
        return answer.status, text

    def add(self, headers, **options):
        body = json.dumps({"urls": ["https://a.test/"]}).encode()
        return self.ask("POST", "/api/v1/crawls", (("Content-Type", "application/json"), *headers), body, **options)[0]

    def by(self, place):
        return place.holdfast("psql", "-Atc", "select distinct created_by from holdfast.v_crawl order by 1").out.split(
            "\n"
        )[:-1]

    def test_a_user_acts_in_the_own_name_through_a_proxy(self):
        place = self.serve(*FIXED, *GROUPS)
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SignedIn)
        proxy.target, port = self.port, proxy.server_address[1]
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        lies = (("X-Forwarded-Email", "root@example.test"), ("X-Forwarded-Groups", "archivists"))
        through = {"address": "127.0.0.1", "port": port}
        anna, bert = (("Cookie", "proxy=anna"), *lies), (("Cookie", "proxy=bert"), *lies)
        self.assertEqual(self.add(lies, **through), 401)
        self.assertEqual(self.add(anna, **through), 201)
        self.assertEqual(self.add(bert, **through), 403)
        status, page = self.ask("GET", "/", bert, **through)
        self.assertEqual(status, 200)
        self.assertIn("bert@example.test", page)
        self.assertNotIn("Sign out", page)
        self.assertEqual(self.by(place), ["user anna@example.test"])
        # What a form of another site begins is refused, although the proxy adds a bearer token.
        foreign = (*anna, ("Sec-Fetch-Site", "cross-site"))
        self.assertEqual(self.add(foreign, **through), 403)
        own = (*anna, ("Sec-Fetch-Site", "same-origin"), ("Content-Type", "application/x-www-form-urlencoded"))
        self.assertEqual(self.ask("POST", "/do/addCrawl", own, b"text=https://b.test/", **through)[0], 303)
        self.assertEqual(len(place.run("list", "crawls", "--json").records), 2)

    def test_only_the_proxy_is_believed(self):
        place = self.serve(*FIXED, *GROUPS)
        anna = (("X-Forwarded-Email", "anna"), ("X-Forwarded-Groups", "archivists"))
        cases = {  # what comes from where: the answer
            "elsewhere": (anna, "127.0.0.1", 401),
            "behind it": ((*anna, ("X-Forwarded-For", TRUSTED)), "127.0.0.1", 401),
            "twice": ((*anna, anna[0]), TRUSTED, 400),
            "two users": ((*anna, ("x-forwarded-email", "bert")), TRUSTED, 400),
            "empty": ((("X-Forwarded-Email", ""), anna[1]), TRUSTED, 401),
            "blank": ((("X-Forwarded-Email", "  "), anna[1]), TRUSTED, 401),
            "groups alone": (anna[1:], TRUSTED, 401),
            "tab": ((("X-Forwarded-Email", "an\tna"), anna[1]), TRUSTED, 400),
            "control": ((("X-Forwarded-Email", b"an\x01na"), anna[1]), TRUSTED, 400),
            "no UTF-8": ((("X-Forwarded-Email", b"an\xffna"), anna[1]), TRUSTED, 400),
            "long": ((("X-Forwarded-Email", "a" * 201), anna[1]), TRUSTED, 400),
            "no group": ((("X-Forwarded-Email", "carl"),), TRUSTED, 403),
            "part of a group": ((anna[0], ("X-Forwarded-Groups", "archivists2,xarchivists,ops")), TRUSTED, 403),
            "star": ((anna[0], ("X-Forwarded-Groups", "*")), TRUSTED, 403),
            "a token": ((("Authorization", "Bearer " + self.token),), "127.0.0.1", 201),
            "no header but a token": ((("Authorization", "Bearer " + self.token),), TRUSTED, 201),
            "a wrong token beside": ((*anna, ("Authorization", "Bearer x")), TRUSTED, 201),
            "two group headers": ((anna[0], ("X-Forwarded-Groups", "staff"), anna[1]), TRUSTED, 201),
            "a group of two words": ((anna[0], ("X-Forwarded-Groups", "staff, site ops")), TRUSTED, 201),
        }  # fmt: skip
        for name, (headers, address, status) in cases.items():
            with self.subTest(name):
                self.assertEqual(self.add(headers, address=address), status)
        # A user is never the token of the same name.
        self.assertEqual(self.by(place), ["token script", "user anna"])

    def test_files_are_shown_to_users(self):
        place = self.serve(*FIXED)
        page = place.path / "page.html"
        page.write_text("<!doctype html><title>Heron</title><p>reeds")
        place.holdfast("import", "page", page, "--url", "https://heron.test/")
        (row,) = place.run("list", "snapshots", "--json").records
        status, shown = self.ask("GET", "/page/" + row["id"], (("X-Forwarded-Email", "é@example.test".encode()),))
        self.assertEqual(status, 200)
        href = urllib.parse.urlsplit(re.search(r'<iframe class="still-page"[^>]* src="([^"]+)"', shown).group(1))
        file = self.ask("GET", href.path, (), port=href.port, address="127.0.0.1")
        self.assertEqual((file[0], "reeds" in file[1]), (200, True))
        wrong = "/" + "0" * 32 + href.path[33:]
        self.assertEqual(self.ask("GET", wrong, (), port=href.port, address="127.0.0.1")[0], 403)

    def test_without_a_proxy_the_setting_is_refused(self):
        place = self.place()
        done = place.run("--set", "serve.listen=127.0.0.1:0", "--set", "serve.user_header=Remote-User", "serve")
        self.check_error(done, CONFIGURATION, "serve.trusted_proxies")
