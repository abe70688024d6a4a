"""What a hook that is taken over can reach: nothing but its own files, as a plain user and as root, with namespaces and
as in a container of Docker. Each attack says in its own output what it got."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from worker import WorkerCase
from harness.wait import until
from harness.worker import read
from harness.machine import can_trace, mount_namespaces
from harness.case import PROGRAM
from harness.collection import ROOT, closed_to_others, looks_for_leaks

SECRET = "hunter2-hunter2"
DOCKER_PROFILE = Path(__file__).with_name("docker_profile.py")

# One line "name: what happened" each. The guard is the parent of the worker, that of the shim, that of the hook.
ATTACKS = r"""
worker=$(cut -d' ' -f4 /proc/$PPID/stat)
guard=$(cut -d' ' -f4 /proc/$worker/stat)
say() { printf '%s: %s\n' "$1" "$(eval "$2" 2>/dev/null | head -c 200 | tr '\n\0' '  ')"; }
{
  say own_files 'echo data >file && cat file; ls -d "$SNAP_DIR" "$CRAWL_DIR" | wc -l'
  say temporary 'echo data >"$TMPDIR/mine" && cat "$TMPDIR/mine"; ls /tmp | grep -c holdfast-tmp-of-others'
  say worker_environment 'cat /proc/$worker/environ'
  say worker_files 'ls /proc/$worker/fd; readlink /proc/$worker/root /proc/$worker/cwd'
  say shim_memory 'head -c 1 /proc/$PPID/mem; cat /proc/$PPID/environ'
  say trace 'python3 - $worker $PPID <<END
import ctypes, sys
print([ctypes.CDLL(None).ptrace(16, int(pid), 0, 0) for pid in sys.argv[1:]])
END'
  say database 'find / -xdev -type s -name ".s.PGSQL*"; psql -h "$DATA_DIR/postgres-run" -U holdfast -Atc "select 1"'
  say archive 'ls "$DATA_DIR/archive"; ls "$DATA_DIR" | grep -v -e lib -e work'
  say secret 'cat "{secret}" "{password}" "{config}"'
  say home 'ls -A "$HOME" | grep -v -e data -e plugins -e mine; echo broken >"$HOME/.profile"'
  say others 'find "$SNAP_DIR/../../../.." -type f -not -path "*/attack/*" -not -name .heartbeat.json; touch "$SNAP_DIR/../../planted"'
  say plugins 'touch "{plugins}/planted"; ls "{plugins}"'
  say system 'touch /usr/planted /etc/planted "{outside}/planted"; ls /usr /etc "{outside}" | grep planted'
  say modes 'chmod 777 "{outside}/precious" && echo changed'
  say uncover 'umount -l "$DATA_DIR"; unshare -Urm umount -l "$DATA_DIR"; unshare -Urm mount -o remount,rw /; ls "$DATA_DIR"/archive'
  say capabilities 'grep CapEff /proc/self/status'
  say signals 'for pid in $worker $guard; do kill -STOP $pid && kill -CONT $pid && echo may; done'
  say session_signals 'kill -0 $(cat "$CRAWL_DIR/attack/daemon.pid") && echo may'
  say nested_user 'unshare -Ur id -u'
} >report.txt
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"tried"}'
"""


# Two hooks of a crawl, which may fail, leave other things in place of their logs. The daemon leaves a link in place of
# the next attempt's directory, and ends, so that its pages are released and tried again.
LINK_FOR_LOG = 'for log in *_link_*.log; do ln -sf "{outside}/precious" "$log"; done; exit 1'
FIFO_FOR_LOG = 'for log in *_fifo_*.log; do rm "$log"; mkfifo "$log"; done; exit 1'
LINK_FOR_ATTEMPT = """
echo ready
until [ -s "$CRAWL_DIR/where" ]; do sleep 0.05; done
ln -s "{outside}" "$(dirname "$(cat "$CRAWL_DIR/where")")/a2"
exit 1
"""
LINK_FOR_PLUGIN = """
echo planted >"$SNAP_DIR/planted"
case $SNAP_DIR in */a1) echo "$SNAP_DIR" >"$CRAWL_DIR/where"; exec sleep 600;; esac
mv "$SNAP_DIR/links" "$SNAP_DIR/aside"
ln -s "{outside}" "$SNAP_DIR/links"
"""


# Twice, over either kind of address.
ASK_SERVE = """
import urllib.request
for url in "{url}api/v1/status", "{url}".replace("127.0.0.1", "[::ffff:127.0.0.1]"):
  try: print("answered:", urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(url, timeout=20).status)
  except Exception as error: print("no answer:", repr(error).replace(chr(10), " "))
"""


def scopes_signals():
    """Whether the kernel keeps hooks from signalling others: the sixth version of Landlock."""
    create_ruleset, version = 444, 1
    return ctypes.CDLL(None).syscall(create_ruleset, None, ctypes.c_size_t(0), version) >= 6


class Sandbox(WorkerCase):
    def place_at(self, plain, level):
        """Beside the build, if that can be: each hook has a /tmp of its own, which would hide a place in there from it,
        whatever else is hidden."""
        beside, deepest = Path(PROGRAM).parent.parent, 60  # a path of a socket has 107 bytes
        usable = os.access(beside, os.W_OK) and len(str(beside)) < deepest and not (ROOT and closed_to_others())
        home = self.worker_place(
            plain,
            beside if usable else None,
            HOOK_SANDBOX={"full": "required", "user": "auto", "none": "off"}[level],
            WORKER_SNAPSHOTS=2,
        )
        namespaces = mount_namespaces(ROOT and not plain)
        if level == "full" and not namespaces:
            self.skipTest("no mount namespaces")
        if level == "user" and namespaces:  # else we are in such a place
            program = home.command
            home.command = lambda *words: ["/usr/bin/python3", "-B", DOCKER_PROFILE, *program(*words)]
        return home

    def attack(self, plain, level="full"):
        home = self.place_at(plain, level)
        # Hidden from none, and open to all: what protects it is that it is read-only.
        outside = Path(tempfile.mkdtemp(prefix="holdfast-outside-", dir=home.path.parent))
        self.addCleanup(shutil.rmtree, outside)
        (outside / "precious").write_text("as it was\n")
        secret, password = home.path / "secret", home.path / "password"
        for path in (secret, password):
            path.write_text("hunter2-hunter2-hunter2-hunter2\n")
        config = home.path / "holdfast.yaml"
        config.write_text("# hunter2\n")
        for path in (outside, outside / "precious", secret, password, config):
            path.chmod(0o777 if path.is_dir() else 0o644 if path == config else 0o600)
            if home.identity:
                os.chown(path, home.identity["user"], home.identity["group"])
        home.environment["HOLDFAST_WEBHOOKS_SECRET_FILE"] = str(secret)
        home.environment["HOLDFAST_DATABASE_PASSWORD_FILE"] = str(password)
        home.hook(
            "attack",
            "on_Snapshot__50_attack.sh",
            ATTACKS.replace("{secret}", str(secret))
            .replace("{password}", str(password))
            .replace("{config}", str(config))
            .replace("{plugins}", str(home.plugins))
            .replace("{outside}", str(outside)),
        )
        home.hook("attack", "on_CrawlSetup__90_attack.daemon.bg.sh", "echo $$ >daemon.pid; echo ready; exec sleep 600")
        home.work()
        self.assertIn(f"sandbox of hooks: {level}", home.log.read_text())
        home.queue("https://site.test/attack", plugins="attack")
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        self.assertEqual(home.sql("select status, error from holdfast.archive_result"), [["succeeded", ""]])
        report = next((home.data / "archive").rglob("attack/report.txt"))
        self.assertEqual(report.stat().st_uid, home.data.stat().st_uid, "the archive is the worker's")
        got = dict(line.partition(": ")[::2] for line in report.read_text().splitlines())
        self.assertEqual((outside / "precious").read_text(), "as it was\n")
        other_user = not plain and ROOT
        changed = level == "user" and not other_user  # no rule is about modes
        rootless = other_user and mount_namespaces(False) and not mount_namespaces(True)
        self.assertEqual((outside / "precious").stat().st_mode & 0o7777, 0o777 if changed else 0o600)
        self.assertEqual([path.name for path in outside.iterdir()], ["precious"])
        self.assertFalse((home.path / ".profile").exists())
        self.assertFalse((home.plugins / "planted").exists())
        self.assertEqual(list((home.data / "work").rglob("planted")), [])
        self.assertEqual(
            {name: text.strip() for name, text in got.items()},
            {
                "own_files": "data 2",
                "temporary": "data 0",
                "worker_environment": "",
                "worker_files": "",
                "shim_memory": "",
                "trace": "[-1, -1]",
                "database": "1" if level == "user" and not other_user else "",
                "archive": "",
                "secret": "",
                "home": "",
                "others": "",
                "plugins": "attack",
                "system": "",
                "modes": "changed" if changed else "",
                "uncover": "",
                "capabilities": "CapEff: 0000000000000000".replace(" ", "\t"),
                "signals": "" if other_user or scopes_signals() else "may may",
                "session_signals": "may",
                "nested_user": "0" if level == "full" or rootless else "",
            },
        )
        home.leave()

    @unittest.skipIf(looks_for_leaks(), "the build lets itself be traced")
    def test_a_plain_user_s_hook_reaches_only_its_own_files(self):
        self.attack(plain=True)

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_root_worker_s_hook_is_another_user_and_reaches_only_its_own_files(self):
        self.attack(plain=False)

    @unittest.skipIf(looks_for_leaks(), "the build lets itself be traced")
    def test_in_docker_a_plain_user_s_hook_opens_only_its_own_files(self):
        self.attack(plain=True, level="user")

    @unittest.skipUnless(ROOT, "needs root")
    def test_in_docker_a_root_worker_s_hook_is_another_user_and_opens_only_its_own_files(self):
        self.attack(plain=False, level="user")

    def guests(self, plain, level):
        """`serve` shows the archive to guests on this machine, but not to hooks, whose files are closed to it."""
        home = self.place_at(plain, level)
        shown = home.path / "serve.txt"
        with open(shown, "wb") as out:
            server = home.start("serve", stdout=out, env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"}, **home.identity)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        until("it listens", lambda: read(shown).startswith(b"Open "))
        url = re.search(r"http://\S+", shown.read_text()).group()
        ask = f"python3 - <<'END'\n{ASK_SERVE.format(url=url)}END\n"
        done = """echo '{"type":"ArchiveResult","status":"succeeded","output_str":"asked"}'"""
        home.hook(
            "ask", "on_Snapshot__50_ask.sh", f"{{ {ask} }} >report.txt 2>&1; (sleep 0.2; {ask}) >>report.txt\n{done}"
        )
        home.work()
        self.assertIn(f"sandbox of hooks: {level}", home.log.read_text())
        home.queue("https://site.test/ask", plugins="ask")
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        report = next((home.data / "archive").rglob("ask/report.txt")).read_text()
        self.assertRegex(report, "^(no answer: [^\n]*\n){4}$")
        # Others on the machine are guests, while the hooks run and after.
        # (Not as root: hooks of other tests may be root's and closed to this server, which then refuses root.)
        other = {"user": 12345, "group": 12345, "extra_groups": []} if ROOT else {}
        asked = subprocess.run(
            ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url], capture_output=True, **other
        )
        self.assertEqual(asked.stdout, b"200", asked.stderr)
        home.leave()

    def test_no_hook_is_a_guest_of_the_page(self):
        for plain in (True, False) if ROOT else (True,):
            for level in ("none", "user"):
                with self.subTest(plain=plain, level=level):
                    self.guests(plain, level)

    def links(self, plain, level):
        """Links that hooks leave where their worker works: it follows none."""
        home = self.place_at(plain, level)
        outside = home.path / "outside"
        outside.mkdir()
        (outside / "precious").write_text("hunter2\n")
        (outside / "urls.jsonl").write_text('{"type":"Snapshot","url":"https://hunter2.test/"}\n')
        for path in (outside, *outside.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o600)
            if home.identity:
                os.chown(path, home.identity["user"], home.identity["group"])
        for name, script in {
            "on_CrawlSetup__10_link_kill_zombies.sh": LINK_FOR_LOG,
            "on_CrawlSetup__11_fifo_kill_zombies.sh": FIFO_FOR_LOG,
            "on_CrawlSetup__90_links.daemon.bg.sh": LINK_FOR_ATTEMPT,
            "on_Snapshot__50_links.sh": LINK_FOR_PLUGIN,
        }.items():
            home.hook("links", name, script.format(outside=outside))
        home.work()
        self.assertIn(f"sandbox of hooks: {level}", home.log.read_text())
        home.queue("https://site.test/links", plugins="links")
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        self.assertEqual(sorted(path.name for path in outside.iterdir()), ["precious", "urls.jsonl"])
        if plain or not ROOT:  # else the hooks' user may not write beside the attempts
            ((outcome, reason),) = home.sql("select outcome, reason from holdfast.snapshot_sealed")
            self.assertEqual(outcome, "failed")
            self.assertIn("has left a link", reason)
        logs = home.sql("select hook_name, log from holdfast.session_hook where status = 'failed'")
        self.assertIn("kill_zombies", str(logs))
        self.assertNotIn("hunter2", str(logs))
        for path in (home.data / "archive").rglob("*"):
            if path.is_file():
                self.assertNotIn(b"hunter2", path.read_bytes())
        home.leave()

    def test_no_link_of_a_plain_user_s_hook_is_followed(self):
        self.links(plain=True, level="full")

    def test_in_docker_no_link_of_a_plain_user_s_hook_is_followed(self):
        self.links(plain=True, level="user")

    @unittest.skipUnless(ROOT, "needs root")
    def test_no_link_of_another_user_s_hook_is_followed(self):
        self.links(plain=False, level="full")

    def logs_past_links(self, plain):
        """`holdfast logs`, perhaps of root, shows what hooks have written, and nothing that a link of theirs leads to."""
        home = self.worker_place(plain, HOOK_SANDBOX="off")
        outside = home.path / "outside"
        (outside / "other").mkdir(parents=True)
        name = "on_Snapshot__10_other.%s.stderr.log"
        (outside / "other" / (name % ("0" * 32))).write_text(SECRET + "\n")
        home.hook(
            "links",
            "on_Snapshot__50_links.sh",
            f"""
            echo mine
            ln -s "{outside}" "$SNAP_DIR/../a9"
            ln -s "{outside}/other" "$SNAP_DIR/other"
            ln -s "{outside}/other/{name % ("0" * 32)}" "{name % ("1" * 32)}"
            mkfifo "{name % ("2" * 32)}"
            gate links
            exit 1
            """,
        )
        home.work()
        home.queue("https://site.test/links", plugins="links")
        until("the links are there", lambda: home.arrived("links"))
        ((snapshot,),) = home.sql("select id from holdfast.snapshot")
        result = home.run("logs", snapshot)
        self.assertEqual([record["text"] for record in result.records], ["mine\n"], str(result))
        home.open("links")
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        result = home.run("logs", snapshot)
        self.assertEqual([record["text"] for record in result.records], ["mine\n"], str(result))
        attempt = home.data / "archive" / home.sql("select directory from holdfast.snapshot_sealed")[0][0]
        attempt.rename(home.path / "moved")
        attempt.symlink_to(outside)
        result = home.run("logs", snapshot)
        self.assertEqual((result.code, result.records), (0, []), str(result))
        home.leave()

    def test_logs_of_a_plain_user_s_hook_follow_no_link(self):
        self.logs_past_links(plain=True)

    @unittest.skipUnless(ROOT, "needs root")
    def test_logs_of_root_s_hook_follow_no_link(self):
        self.logs_past_links(plain=False)

    def secrets_in_environments(self, plain):
        """What a hook without a sandbox, perhaps of root, finds in the environments of all processes."""
        home = self.worker_place(plain, HOOK_SANDBOX="off")
        for name in ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "SOME_SERVICE_TOKEN"):
            home.environment[name] = f"{SECRET}-{name}"
        home.environment["SOME_URL"] = f"https://me:{SECRET}-url@site.test/"
        home.hook(
            "look",
            "on_Snapshot__50_look.sh",
            f"cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -a {SECRET} >found.txt\ntrue",
        )
        home.work()
        environment = read(f"/proc/{home.worker_pid()}/environ") + read(f"/proc/{home.guard.pid}/environ")
        if can_trace():
            self.assertIn(b"HOLDFAST_LOG_LEVEL=info", environment)
        self.assertNotIn(SECRET.encode(), environment)
        home.queue("https://site.test/look", plugins="look")
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        found = next((home.data / "archive").rglob("look/found.txt"))
        self.assertEqual(found.read_text(), "")
        home.leave()

    def test_no_environment_has_a_secret_of_a_plain_user_s_worker(self):
        self.secrets_in_environments(plain=True)

    @unittest.skipUnless(ROOT, "needs root")
    def test_no_environment_has_a_secret_of_root_s_worker(self):
        self.secrets_in_environments(plain=False)
