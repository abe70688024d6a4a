"""Crawl sessions through a real worker: lingering, the last hooks of a crawl, and what hooks of the old generation say."""

import hashlib
import os

from worker import WorkerCase, until


class Sessions(WorkerCase):
    def daemon(self, home, plugin="browser"):
        home.hook(
            plugin,
            f"on_CrawlSetup__90_{plugin}.daemon.bg.sh",
            'echo "$$" >"$gates/daemon.$$"; echo ready; exec sleep 600',
        )

    def pages(self, home, plugin="page"):
        home.hook(plugin, f"on_Snapshot__50_{plugin}.sh", 'gate "$name"; echo done >page.txt')

    def until_sealed(self, home, count):
        until(
            f"{count} snapshots are sealed",
            lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [[str(count)]],
        )

    def begin(self, **settings):
        home = self.worker_place(**settings)
        self.daemon(home)
        self.pages(home)
        home.work()
        return home

    def test_it_lingers_and_is_used_again(self):
        home = self.begin(SESSIONS_LINGER="300s")
        home.queue("https://first.test/one", "https://second.test/two", plugins="browser,page")
        until("both are at their gates", lambda: home.arrived("one") and home.arrived("two"))
        (identity,) = home.sql("select id from holdfast.snapshot where url like '%two'")
        self.assertEqual(home.run("pause", identity[0]).code, 0)  # its hooks are ended, it waits
        until(
            "it is released",
            lambda: home.sql("select count(*) from holdfast.v_running where url like '%two'") == [["0"]],
        )
        home.open("one")
        self.until_sealed(home, 1)
        self.assertEqual(home.sql("select status, snapshots from holdfast.v_session"), [["ready", "0"]])
        home.open("two")
        self.assertEqual(home.run("resume", identity[0]).code, 0)
        self.until_sealed(home, 2)
        until("the session is closed", lambda: home.sql("select status from holdfast.session") == [["closed"]])
        self.assertEqual(len(list(home.gates.glob("daemon.*"))), 1, "the daemon was started once")
        self.assertEqual(home.survivors(), [])

    def test_it_ends_when_it_has_lingered(self):
        home = self.begin(SESSIONS_LINGER="200ms")
        home.queue("https://first.test/one", "https://second.test/two", plugins="browser,page")
        until("both are at their gates", lambda: home.arrived("one") and home.arrived("two"))
        (identity,) = home.sql("select id from holdfast.snapshot where url like '%two'")
        self.assertEqual(home.run("pause", identity[0]).code, 0)
        until(
            "it is released",
            lambda: home.sql("select count(*) from holdfast.v_running where url like '%two'") == [["0"]],
        )
        home.open("one")
        self.until_sealed(home, 1)
        until(
            "the session is closed",
            lambda: (
                home.sql("select status, reason from holdfast.session")
                == [["closed", "it had nothing to do for a while"]]
            ),
        )
        self.assertEqual(home.survivors(), [])
        home.open("two")
        self.assertEqual(home.run("resume", identity[0]).code, 0)
        self.until_sealed(home, 2)
        self.assertEqual(home.sql("select count(*) from holdfast.session"), [["2"]])

    def test_last_hooks(self):
        """on_CrawlEnd runs once, after the last page, while the daemons still run."""
        home = self.worker_place()
        self.daemon(home)
        home.hook("page", "on_Snapshot__50_page.sh", "echo done >page.txt")
        home.hook(
            "browser",
            "on_CrawlEnd__10_browser.sh",
            'for file in "$gates"/daemon.*; do kill -0 "${file##*.}" && echo alive; done >>"$gates/end"; echo "$@" >>"$gates/end"',
        )
        home.work()
        home.queue("https://a.test/one", "https://b.test/two", plugins="browser,page")
        self.until_sealed(home, 2)
        until("the session is closed", lambda: home.sql("select status from holdfast.session") == [["closed"]])
        (crawl,) = home.sql("select id from holdfast.crawl")
        lines = (home.gates / "end").read_text().splitlines()
        self.assertEqual(lines[0], "alive")
        self.assertEqual((lines.count("alive"), sum(line.startswith("--url=") for line in lines)), (1, 1), lines)
        self.assertIn(f"--crawl-id={crawl[0]}", lines[1])
        self.assertEqual(
            home.sql("select hook_name, status from holdfast.session_hook order by 1")[0],
            ["on_CrawlEnd__10_browser", "noresults"],
        )
        self.assertEqual(home.survivors(), [])

    def test_records_of_the_old_generation(self):
        """A crawl hook asks for a program, an on_Binary hook installs it, later hooks run it; Machine records are options."""
        home = self.worker_place()
        home.hook(
            "tool",
            "on_Crawl__00_install.sh",
            """echo '{"type":"Binary","name":"oldtool","binproviders":"custom,env"}'""",
        )
        home.hook(
            "custom",
            "on_Binary__12_custom.sh",
            'printf "%s\\n" "$@" >"$gates/arguments"\n'
            'mkdir -p "$LIB_DIR/odd"\n'
            'printf "#!/bin/sh\\necho oldtool 4.2.1\\n" >"$LIB_DIR/odd/oldtool"; chmod 755 "$LIB_DIR/odd/oldtool"\n'
            'echo "{\\"type\\":\\"Binary\\",\\"name\\":\\"oldtool\\",\\"abspath\\":\\"$LIB_DIR/odd/oldtool\\",\\"binprovider\\":\\"custom\\"}"\n'
            'echo "{\\"type\\":\\"Machine\\",\\"config\\":{\\"OLDTOOL_BINARY\\":\\"$LIB_DIR/odd/oldtool\\"}}"',
        )
        home.hook(
            "tool",
            "on_Crawl__20_config.sh",
            """echo '{"type":"Machine","_method":"update","key":"config/OLD_WORD","value":"told"}'
            echo '{"type":"Machine","config":{"OLD_OTHER":"also told"}}'""",
        )
        home.hook(
            "tool", "on_Snapshot__50_tool.sh", '"$OLDTOOL_BINARY" >tool.txt; echo "$OLD_WORD, $OLD_OTHER" >>tool.txt'
        )
        home.work()
        home.queue("https://site.test/old", plugins="custom,tool")
        self.until_sealed(home, 1)
        self.assertEqual(home.sql("select outcome from holdfast.snapshot_sealed"), [["succeeded"]])
        (attempt,) = home.attempts()
        self.assertEqual((attempt / "tool/tool.txt").read_text(), "oldtool 4.2.1\ntold, also told\n")
        program = home.data / "lib/odd/oldtool"
        self.assertEqual(
            home.sql("select name, status, path, version, provider, sha256, plugins from holdfast.v_binary"),
            [
                [
                    "oldtool",
                    "installed",
                    str(program),
                    "4.2.1",
                    "custom",
                    hashlib.sha256(program.read_bytes()).hexdigest(),
                    "{tool}",
                ]
            ],
        )
        arguments = (home.gates / "arguments").read_text().split()
        self.assertEqual(
            [word.split("=")[0] for word in arguments],
            ["--binary-id", "--machine-id", "--name", "--binproviders", "--overrides"],
        )
        self.assertIn("--name=oldtool", arguments)
        self.assertIn("--binproviders=custom,env", arguments)
        # The next worker of this machine knows it without anybody's installing it again.
        home.leave()
        os.remove(home.gates / "arguments")
        home.work()
        home.queue("https://site.test/again", plugins="custom,tool")
        self.until_sealed(home, 2)
        self.assertFalse((home.gates / "arguments").exists())
        self.assertEqual(home.run("check").records, [])

    def test_every_page_has_a_way_out(self):
        home = self.worker_place(WORKER_SNAPSHOTS=12, HOOK_SANDBOX="auto")
        home.hook("page", "on_Snapshot__50_page.sh", "sleep 0.3; echo done >page.txt")
        home.work()
        home.queue(*(f"https://site.test/{number}" for number in range(72)), plugins="page")
        self.until_sealed(home, 72)
        self.assertEqual(home.sql("select count(*) from holdfast.attempt"), [["0"]], "a page was released")

    def test_the_heartbeat_follows_no_link(self):
        home = self.worker_place()
        victim = home.path / "victim"
        victim.write_text("untouched\n")
        home.hook(
            "planter",
            "on_CrawlSetup__10_planter.sh",
            f"""cd "$CRAWL_DIR"
                before=$(cat .heartbeat.json)
                ln -s '{victim}' .heartbeat.json.new
                for ((tries = 0; tries < 300; ++tries)); do
                  [[ $(cat .heartbeat.json) == "$before" ]] || exit 0
                  sleep 0.1
                done
                exit 3""",
        )
        self.pages(home)
        home.open("one")
        home.work()
        home.queue("https://site.test/one", plugins="planter,page")
        self.until_sealed(home, 1)
        self.assertEqual(victim.read_text(), "untouched\n")
        self.assertEqual(home.sql("select outcome from holdfast.snapshot_sealed"), [["succeeded"]])

    def test_the_library_of_a_session(self):
        """Hooks of a crawl keep things there for the hooks of its pages, beside what is installed."""
        home = self.worker_place()
        tools = home.data / "lib/tools"
        tools.mkdir(parents=True)
        (tools / "installed").write_text("installed\n")
        home.hook("keeper", "on_CrawlSetup__10_keeper.sh", 'echo kept >"$LIB_DIR/kept"')
        home.hook("keeper", "on_Snapshot__50_keeper.sh", 'cat "$LIB_DIR/kept" "$LIB_DIR/tools/installed" >page.txt')
        home.work()
        home.queue("https://site.test/kept", plugins="keeper")
        self.until_sealed(home, 1)
        (row,) = home.sql("select outcome, directory from holdfast.snapshot_sealed")
        self.assertEqual(row[0], "succeeded")
        self.assertEqual((home.data / "archive" / row[1] / "keeper/page.txt").read_text(), "kept\ninstalled\n")

    def test_logs_of_a_crawl_hook(self):
        """What a crawl hook that failed has printed is kept, although its directory goes."""
        home = self.worker_place()
        home.hook(
            "broken", "on_CrawlSetup__10_broken.sh", "echo 'on its way'; echo 'it broke: \x1b[31mred' >&2; exit 3"
        )
        home.hook("broken", "on_Snapshot__50_broken.sh", "echo never")
        home.work()
        home.queue("https://site.test/broken", plugins="broken")
        until("it has failed", lambda: home.sql("select status from holdfast.session limit 1") == [["failed"]])
        (crawl,) = home.sql("select id from holdfast.crawl")
        records = home.run("logs", crawl[0]).records
        self.assertEqual((records[0]["plugin"], records[0]["text"]), ("broken", "on its way\nit broke: \x1b[31mred\n"))
        self.assertEqual(home.run("cancel", crawl[0]).code, 0)
