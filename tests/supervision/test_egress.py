"""Where hooks may connect to: the web through the worker's proxy, and nothing private, by no page and by no program."""

import json
import os
import shutil
import sys
import unittest
from pathlib import Path

from worker import WorkerCase, until
from harness.machine import network_namespaces
from harness.collection import closed_to_others

SMALL_WEB = Path(__file__).with_name("small_web.py")
DOCKER_PROFILE = Path(__file__).with_name("docker_profile.py")
PLUGINS = Path(__file__).parents[2] / "deploy/plugins"

# What a program gets that heeds the proxy variables, and one that does not.
ASK = r"""
python3 - <<'END' >report.txt
import socket, urllib.request
for url in ("http://public.example/plain", "http://public.example/head", "http://inside.example/", "http://10.9.9.9/",
            "http://169.254.169.254/", "http://0x0a.9.9.9/", "http://[::ffff:10.9.9.9]/", "http://localhost/"):
    try:
        print("proxy", url, urllib.request.urlopen(url, timeout=20).status)
    except Exception as error:
        print("proxy", url, getattr(error, "code", "refused"))
for address in ("93.184.216.34", "10.9.9.9", "169.254.169.254"):
    try:
        socket.create_connection((address, 80), 5)
        print("direct", address, "connected")
    except OSError as error:
        print("direct", address, error.strerror)
END
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"tried"}'
"""

# A program that records nothing.
FETCH = r"""
python3 -c "import urllib.request; urllib.request.urlretrieve('http://unseen.example/plain', 'unseen.html')"
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"unseen.html"}'
"""


@unittest.skipUnless(network_namespaces(), "needs root and network namespaces")
class Egress(WorkerCase):
    def begin(self, plain, docker=False, **settings):
        home = self.worker_place(plain, URLS_ALLOW_PRIVATE="false", WORKER_SNAPSHOTS=2, **settings)
        user = home.identity.get("user", os.getuid())
        group = home.identity.get("group", os.getgid())
        program = home.command
        prefix = ["unshare", "--net", "--mount", sys.executable, "-B", SMALL_WEB, home.path, user, group]
        if docker:
            prefix += ["/usr/bin/python3", "-B", DOCKER_PROFILE]
        home.command = lambda *words: [*map(str, prefix), *program(*words)]
        identity, home.identity = home.identity, {}  # the prefix changes the user
        home.hook("ask", "on_Snapshot__50_ask.sh", ASK)
        home.hook("fetch", "on_Snapshot__50_fetch.sh", FETCH)
        for plugin in ("wget", "browser", "dom"):
            shutil.copytree(PLUGINS / plugin, home.plugins / plugin)
        home.work()
        home.command, home.identity = program, identity
        return home

    def sealed(self, home, count):
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [[str(count)]])

    def asked(self, home):
        return (home.path / "private.log").read_text()

    def report(self, home):
        """What ASK found out."""
        home.queue("http://public.example/plain", plugins="ask")
        self.sealed(home, 1)
        self.assertEqual(home.sql("select status, error from holdfast.archive_result"), [["succeeded", ""]])
        lines = next((home.data / "archive").rglob("ask/report.txt")).read_text().splitlines()
        proxied = [line.split()[2] for line in lines if line.startswith("proxy")]
        self.assertEqual(proxied[0], "200", lines)
        self.assertEqual(set(proxied[1:]) - {"403", "refused"}, set(), lines)
        return {line.split()[1]: line.split(maxsplit=2)[2] for line in lines if line.startswith("direct")}

    def in_the_sandbox(self, plain):
        home = self.begin(plain, HOOK_SANDBOX="required")
        self.assertIn(b"network of hooks: the egress proxy, from a network of their own", home.log.read_bytes())
        self.assertEqual(set(self.report(home).values()), {"Network is unreachable"})
        self.assertEqual(self.asked(home), "")
        self.assertRegex(home.log.read_text(), "requests of its hooks were refused: .*is not a public")
        (counted,) = home.sql("select requests, requests_refused, received_bytes from holdfast.v_snapshot")
        requests, refused, received = map(int, counted)
        self.assertGreater(requests, refused)
        self.assertGreater(refused, 0)
        self.assertGreater(received, 0)
        (snapshot,) = home.sql("select id from holdfast.snapshot")
        shown = home.run("show", *snapshot, **home.identity)
        self.assertRegex(str(shown), rf"requests_refused\W+{refused}")
        home.leave()

    def test_a_plain_user_s_sandboxed_hooks_have_no_other_way_than_the_proxy(self):
        self.in_the_sandbox(plain=True)

    def test_a_root_worker_s_sandboxed_hooks_have_no_other_way_than_the_proxy(self):
        self.in_the_sandbox(plain=False)

    @unittest.skipUnless(shutil.which("wget"), "needs wget")
    def test_bytes_that_are_in_no_record_are_told(self):
        home = self.begin(True, HOOK_SANDBOX="required")
        size = len("<title>plain</title><p>public words")
        for plugins in ("wget", "wget,fetch"):
            home.queue("http://public.example/plain", plugins=plugins)
        self.sealed(home, 2)
        facts = home.sql("select unrecorded, id from holdfast.v_snapshot order by created_at")
        self.assertEqual(facts[0][0], "{}")
        self.assertGreater(json.loads(facts[1][0])["unseen.example"], size)
        self.assertNotIn("public.example", facts[1][0])
        ((why,),) = home.sql(f"select reason from holdfast.why('{facts[1][1]}')")
        self.assertRegex(why, r"in no record: \d+ bytes from unseen\.example")
        home.leave()

    def test_without_a_sandbox_programs_that_heed_the_proxy_are_kept_from_private_addresses(self):
        home = self.begin(True, HOOK_SANDBOX="off")
        self.assertEqual(set(self.report(home).values()), {"connected"})
        self.assertEqual(self.asked(home), "")  # the connections of the program that ignores it say nothing
        home.leave()

    def built_in(self, level, *plugins, plain=True):
        sandbox = {"full": "required", "user": "auto", "none": "off"}[level]
        home = self.begin(plain, docker=level == "user", HOOK_SANDBOX=sandbox)
        self.assertIn(f"sandbox of hooks: {level}", home.log.read_text())
        home.queue("http://public.example/plain", "http://public.example/frame", plugins=",".join(plugins))
        home.queue("http://public.example/head", "http://public.example:8081/dead", plugins=",".join(plugins))
        self.sealed(home, 4)
        outcomes = dict(
            home.sql(
                "select s.url, t.outcome from holdfast.snapshot_sealed t join holdfast.snapshot s on s.id = t.snapshot_id"
            )
        )
        self.assertEqual(outcomes["http://public.example/plain"], "succeeded")
        dead = home.sql("select coalesce(http_status, 0), reason from holdfast.v_snapshot where url like '%/dead'")
        self.assertEqual(dead, [["0", "public.example: Connection refused"]])  # the proxy's answer is not the site's
        self.assertIn(outcomes["http://public.example/head"], ("refused", "failed"))
        files = [path for path in (home.data / "archive").rglob("*") if path.is_file()]
        kept = {path: path.read_bytes() for path in files}
        self.assertTrue(any(b"public words" in text for text in kept.values()))
        self.assertEqual([path for path, text in kept.items() if b"TOP SECRET" in text], [])
        self.assertEqual(self.asked(home), "")
        home.leave()

    @unittest.skipUnless(shutil.which("wget"), "needs wget")
    def test_wget_archives_nothing_private(self):
        for level in ("full", "user", "none"):
            with self.subTest(level):
                self.built_in(level, "wget")

    @unittest.skipUnless(shutil.which("chromium"), "needs Chromium")
    def test_chromium_archives_nothing_private(self):
        for level in ("full", "user", "none"):
            with self.subTest(level):
                self.built_in(level, "browser", "dom")

    @unittest.skipIf(closed_to_others(), "the user of hooks cannot enter this checkout")
    @unittest.skipUnless(shutil.which("chromium"), "needs Chromium")
    def test_chromium_works_as_another_user_in_docker(self):
        self.built_in("user", "browser", "dom", plain=False)
