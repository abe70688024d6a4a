"""Programs that plugins need, personas, options and logs, as people see them."""

import json
import os
import re
import urllib.request

from worker import WorkerCase, until
from harness.case import FAILED_WORK, OK, REFUSED, USAGE


def program(path, text="#!/bin/sh\necho tool 1.2.3\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Programs(WorkerCase):
    def plugin(self, home, name, config, script="echo done >page.txt"):
        home.hook(name, f"on_Snapshot__50_{name}.sh", script)
        (home.plugins / name / "config.json").write_text(json.dumps(config))

    def needy(self, home, script='"$NEEDY_BINARY" >page.txt', enabled=True):
        self.plugin(
            home,
            "needy",
            {
                "properties": {
                    "NEEDY_BINARY": {"type": "string", "default": "needed"},
                    "NEEDY_ENABLED": {"type": "boolean", "default": enabled},
                },
                "required_binaries": [
                    {
                        "name": "{NEEDY_BINARY}",
                        "binproviders": "env,apt",
                        "min_version": "1.2",
                        "overrides": {"apt": {"install_args": ["needed-utils", "needed-doc"]}},
                    }
                ],
            },
            script,
        )

    def binaries(self, home):
        return home.sql("select name, status, path, version, length(sha256), failures, error from holdfast.v_binary")

    def test_a_program_comes_changes_and_goes(self):
        home = self.worker_place(BINARIES_PATH="tools")
        self.needy(home)
        home.work()
        until("it is looked for", lambda: [row[5] for row in self.binaries(home)] == ["1"])
        self.assertEqual(
            self.binaries(home), [["needed", "queued", "", "", "", "1", "not found on PATH nor in binaries.path"]]
        )
        self.assertEqual(
            home.sql("select retry_at > clock_timestamp() + interval '4 minutes' from holdfast.binary"), [["t"]]
        )
        home.queue("https://site.test/one", plugins="needy")
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        self.assertEqual(
            home.sql("select status, error from holdfast.archive_result"),
            [["skipped", "needed is not installed on this machine"]],
        )

        tool = home.path / "tools/needed"
        program(tool)
        self.assertEqual(home.run("binary", "recheck", "needed").code, OK)
        home.leave()  # the next worker looks at once
        home.work()
        until("it is found", lambda: self.binaries(home)[0][1] == "installed")
        self.assertEqual(self.binaries(home), [["needed", "installed", str(tool), "1.2.3", "64", "0", ""]])
        home.queue("https://site.test/two", plugins="needy")
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["2"]])
        self.assertEqual(
            home.sql("select status from holdfast.archive_result order by started_at desc limit 1"), [["succeeded"]]
        )
        self.assertEqual(
            home.sql("select retry_at > clock_timestamp() + interval '20 minutes' from holdfast.binary"), [["t"]]
        )

        before = home.sql("select sha256 from holdfast.binary")
        program(tool, "#!/bin/sh\necho tool 2.0\n")
        home.run("binary", "recheck")
        home.leave()
        home.work()
        until("it is another one", lambda: self.binaries(home)[0][3] == "2.0")
        self.assertNotEqual(home.sql("select sha256 from holdfast.binary"), before)

        tool.unlink()
        home.run("binary", "recheck")
        home.leave()
        home.work()
        until("it is gone", lambda: self.binaries(home)[0][1] == "queued")
        (record,) = home.run("binary", "list").records
        self.assertEqual(
            (record["type"], record["name"], record["status"], record["path"]), ("Binary", "needed", "queued", None)
        )
        self.assertEqual(home.run("binary", "list", "--status", "installed").records, [])
        home.leave()
        self.assertEqual(home.run("check").records, [])

    def test_a_program_of_a_plugin_that_only_a_crawl_switches_on(self):
        home = self.worker_place(BINARIES_PATH="tools")
        self.needy(home, enabled=False)
        self.plugin(home, "content", {})
        home.work()
        home.queue("https://site.test/one", plugins="content")
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        self.assertEqual(self.binaries(home), [])
        home.queue("https://site.test/two", plugins="needy")
        until("it is looked for", lambda: [row[5] for row in self.binaries(home)] == ["1"])
        self.assertEqual(home.sql("select name, plugins from holdfast.v_binary"), [["needed", "{needy}"]])
        home.leave()

    def test_a_program_that_hangs_when_asked_for_its_version(self):
        home = self.worker_place(BINARIES_PATH="tools")
        program(home.path / "tools/needed", "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n")
        self.needy(home)
        home.work()
        until(
            "it is found, without a version", lambda: self.binaries(home) and self.binaries(home)[0][1] == "installed"
        )
        self.assertEqual(self.binaries(home)[0][3], "")
        self.assertEqual(home.survivors(), [])
        home.leave()

    def test_doctor(self):
        home = self.worker_place(filled=False, BINARIES_PATH="tools")
        self.needy(home)
        self.plugin(home, "content", {})
        result = home.holdfast("doctor", expect=FAILED_WORK)
        needs = {
            (record["plugin"], record["binary"].rpartition("/")[2]): record
            for record in result.records
            if record["type"] == "Need"
        }
        (machine,) = (record for record in result.records if record["type"] == "Machine")
        self.assertRegex(machine["cgroups"], r"^(version [12], /|none: )")
        self.assertEqual(needs["needy", "needed"]["state"], "missing")
        self.assertEqual(needs["needy", "needed"]["wanted"], "1.2")
        if os.path.exists("/usr/bin/apt-get"):
            self.assertEqual(
                needs["needy", "needed"]["install"],
                "apt-get install --no-install-recommends needed-utils needed-doc",
            )
        self.assertEqual(needs["content", "bash"]["state"], "found")
        program(home.path / "tools/needed", "#!/bin/sh\necho needed 1.1.9\n")
        needs = {record["binary"]: record for record in home.run("doctor", "needy").records if record["type"] == "Need"}
        self.assertEqual((needs["needed"]["state"], needs["needed"]["version"]), ("old", "1.1.9"))
        program(home.path / "tools/needed")
        result = home.holdfast("doctor")
        self.assertFalse(home.data.exists(), "it needs no database")
        self.check_error(home.run("doctor", "nothing"), USAGE, "nothing")

    def test_doctor_leaves_the_plugins_of_archivebox_to_their_installer(self):
        home = self.worker_place(BINARIES_PATH="tools")
        home.plugins = home.data / "lib/abx/plugins"
        home.plugins.mkdir(parents=True)
        home.environment["HOLDFAST_PLUGINS_PATH"] = str(home.plugins)
        program(home.path / "tools/here", "#!/bin/sh\necho here 1.0.1\n")
        programs = [
            {"name": str(home.data / "lib/abx/bin/gone"), "binproviders": "env,npm"},
            {"name": "here", "binproviders": "env,apt", "min_version": "2.0"},
            {"name": "extension", "binproviders": "env,chromewebstore"},
        ]
        self.plugin(home, "foreign", {"required_binaries": programs})
        result = home.holdfast("doctor", "foreign", expect=FAILED_WORK)
        needs = {record["binary"].rpartition("/")[2]: record for record in result.records if record["type"] == "Need"}
        self.assertEqual(
            {name: (need["state"], need["install"]) for name, need in needs.items() if need["state"] != "found"},
            {
                "gone": ("missing", "holdfast plugins install abx -p foreign"),
                "here": ("old", "holdfast plugins install abx -p foreign"),
                "extension": ("missing", "by hand (env,chromewebstore)"),
            },
        )

    def test_doctor_misses_fonts(self):
        """Only where a browser is wanted. The stand-ins say what fontconfig says of a machine with one font."""
        home = self.worker_place(BINARIES_PATH="tools")
        self.plugin(home, "plain", {})
        program(home.path / "tools/chromium", "#!/bin/sh\necho Chromium 140.0.1\n")
        program(home.path / "tools/fc-match", "#!/bin/sh\necho 'Liberation Mono|100'\n")
        program(home.path / "tools/fc-list", "#!/bin/sh\ncase $* in *:lang=ar*) echo 'Some Arabic' ;; esac\n")

        def fonts():
            result = home.run("doctor")
            found = [record for record in result.records if record["type"] == "Need" and record["plugin"] == "fonts"]
            return result.code, {record["binary"]: record for record in found}

        self.assertEqual(fonts(), (OK, {}))
        self.plugin(home, "browser", {"required_binaries": [{"name": "chromium", "binproviders": "env"}]})
        code, needs = fonts()
        self.assertEqual(code, FAILED_WORK)
        self.assertEqual([name for name, need in needs.items() if need["state"] == "found"], ["font for Arabic"])
        self.assertEqual(needs["sans-serif font"]["state"], "missing")
        self.assertIn("fonts-noto-cjk", needs["font for Chinese"]["install"])
        self.assertIn("fonts-noto-color-emoji", needs["font for emoji"]["install"])

    def test_doctor_without_fontconfig(self):
        """Which fonts are there is not known then."""
        home = self.worker_place(BINARIES_PATH="tools")
        self.plugin(home, "browser", {"required_binaries": [{"name": "chromium", "binproviders": "env"}]})
        for name in ("chromium", "bash", "sh"):
            program(home.path / "tools" / name, "#!/bin/sh\necho Chromium 140.0.1\n")
        home.environment["PATH"] = str(home.path / "tools")
        fonts = [record for record in home.run("doctor").records if record.get("plugin") == "fonts"]
        self.assertEqual([(font["binary"], font["state"]) for font in fonts], [("fc-list", "missing")])

    def test_options(self):
        home = self.worker_place()
        self.plugin(
            home,
            "sample",
            {
                "properties": {
                    "SAMPLE_TIMEOUT": {"type": "integer", "default": 30, "x-fallback": "TIMEOUT"},
                    "SAMPLE_WORD": {"type": "string", "default": "plain", "x-aliases": ["OLD_WORD"]},
                    "SAMPLE_API_KEY": {"type": "string", "default": ""},
                }
            },
        )
        home.environment["HOLDFAST_HOOK_TIMEOUT"] = "77s"
        home.work()
        home.run("persona", "set", "quiet", "--option", "OLD_WORD=soft")
        self.assertEqual(home.run("add", "https://site.test/", "--bg", "--persona", "quiet", "-p", "sample").code, OK)
        self.assertEqual(
            home.run("add", "https://site.test/2", "--bg", "-p", "sample", "--option", "SAMPLE_WORD=hard").code, OK
        )

        def seen(*arguments):
            result = home.holdfast("config", *arguments)
            return {record["key"]: (record["value"], record["origin"]) for record in result.records}

        options = seen("--plugin", "sample")
        self.assertEqual(options["SAMPLE_TIMEOUT"], ("77", "TIMEOUT, hook.timeout, environment HOLDFAST_HOOK_TIMEOUT"))
        self.assertEqual(options["SAMPLE_WORD"], ("plain", "default of the plugin"))
        crawls = dict((url, crawl) for crawl, url in home.sql("select id, first_url from holdfast.v_crawl"))
        options = seen("--crawl", crawls["https://site.test/"])
        self.assertEqual(options["SAMPLE_WORD"], ("soft", "OLD_WORD, persona quiet"))
        self.assertEqual(
            seen("--crawl", crawls["https://site.test/2"], "--plugin", "sample")["SAMPLE_WORD"], ("hard", "the crawl")
        )
        self.check_error(home.run("config", "--plugin", "nothing"), USAGE, "nothing")

    def test_options_from_the_environment(self):
        """Weaker than the configuration and the crawl, stronger than defaults; secrets stay behind."""
        home = self.worker_place()
        self.plugin(
            home,
            "sample",
            {
                "properties": {
                    "SAMPLE_WORD": {"type": "string", "default": "plain", "x-aliases": ["OLD_WORD"]},
                    "SAMPLE_SIZE": {"type": "integer", "default": 1},
                    "SAMPLE_LIMIT": {"type": "integer", "default": 5, "x-aliases": ["OLD_LIMIT"]},
                    "SAMPLE_API_KEY": {"type": "string", "default": ""},
                    "SAMPLE_CODE": {"type": "string", "default": "", "x-sensitive": True},
                }
            },
            script='env | grep -E "^(SAMPLE|CHROME_SANDBOX|USER_AGENT|UNKNOWN)" | sort >env.txt',
        )
        home.environment.update(
            CHROME_SANDBOX="false",
            OLD_WORD="from the environment",
            SAMPLE_SIZE="7",
            SAMPLE_LIMIT="9",
            UNKNOWN="x",
            SAMPLE_API_KEY="xyzzy",
            SAMPLE_CODE="plugh",
            USER_AGENT="",
        )
        (home.path / "holdfast.yaml").write_text("hooks:\n  OLD_LIMIT: 8\n")
        home.work()
        home.queue("https://site.test/one", plugins="sample")
        home.queue("https://site.test/two", plugins="sample", SAMPLE_SIZE=3)
        until("both are sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["2"]])
        seen = {}
        for url, directory in home.sql("select url, directory from holdfast.v_snapshot"):
            lines = (home.data / "archive" / directory / "sample/env.txt").read_text().splitlines()
            seen[url[-3:]] = dict(line.split("=", 1) for line in lines)
        self.assertEqual(
            seen["one"],
            {
                "CHROME_SANDBOX": "false",
                "SAMPLE_WORD": "from the environment",
                "SAMPLE_SIZE": "7",
                "SAMPLE_LIMIT": "8",
            },
        )
        self.assertEqual(
            seen["two"],
            {
                "CHROME_SANDBOX": "false",
                "SAMPLE_WORD": "from the environment",
                "SAMPLE_SIZE": "3",
                "SAMPLE_LIMIT": "8",
            },
        )

    def test_personas(self):
        home = self.worker_place()
        home.hook(
            "page",
            "on_Snapshot__50_page.sh",
            'cat "$COOKIES_FILE" >cookies.txt; echo "$ACTIVE_PERSONA $SAMPLE_WORD $PAGE_WORD" >words.txt; stat -c %a "$COOKIES_FILE" >>words.txt',
        )
        (home.plugins / "page/config.json").write_text('{"properties": {"PAGE_WORD": {"type": "string"}}}')
        jar = home.path / "jar.txt"
        jar.write_text("# Netscape HTTP Cookie File\n.site.test\tTRUE\t/\tFALSE\t0\tname\tvalue\n")
        self.assertEqual(home.run("persona", "import", "work", jar).code, OK)
        options = ("--option", "SAMPLE_WORD=persona", "--option", "PAGE_WORD=persona")
        self.assertEqual(home.run("persona", "set", "work", *options).code, OK)
        self.assertEqual([record["name"] for record in home.run("persona", "list").records], ["work"])
        self.check_error(home.run("persona", "set", "../evil"), REFUSED, "../evil")
        secret = home.run("persona", "set", "work", "--option", "SAMPLE_API_KEY=xyzzy")
        self.check_error(secret, REFUSED, "SAMPLE_API_KEY", "secret")
        home.environment["HOLDFAST_PERSONA_PLUGINS"] = "browser, page"
        home.work()
        self.check_error(home.run("add", "https://site.test/", "--bg", "--persona", "nobody"), REFUSED, "nobody")
        self.assertEqual(
            home.run("add", "https://site.test/", "--bg", "--persona", "work", "--option", "PAGE_WORD=crawl").code, OK
        )
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        (attempt,) = home.attempts()
        self.assertEqual((attempt / "page/words.txt").read_text(), "work persona crawl\n600\n")
        self.assertEqual((attempt / "page/cookies.txt").read_text(), jar.read_text())
        self.assertEqual(home.run("persona", "remove", "work").code, OK)
        self.assertEqual(home.run("persona", "list").records, [])

    def test_logs(self):
        home = self.worker_place()
        home.hook("talk", "on_Snapshot__50_talk.sh", "echo first; echo problem >&2; gate talk; echo last; exit 3")
        home.hook("fine", "on_Snapshot__60_fine.sh", "echo nothing >page.txt")
        home.work()
        home.queue("https://site.test/talk", plugins="talk,fine")
        until("it talks", lambda: home.arrived("talk"))
        ((snapshot,),) = home.sql("select id from holdfast.snapshot")

        def text(records):
            said = {}
            for record in records:
                said[record["plugin"], record["stream"]] = (
                    said.get((record["plugin"], record["stream"]), "") + record["text"]
                )
            return said

        until("both are there", lambda: len(text(home.run("logs", snapshot).records)) == 2)
        self.assertEqual(
            text(home.run("logs", snapshot).records), {("talk", "stdout"): "first\n", ("talk", "stderr"): "problem\n"}
        )
        following = home.start("logs", "--follow", snapshot)
        self.assertIn("first", following.stdout.readline() + following.stdout.readline())
        home.open("talk")
        result = home.finish(following)
        self.assertEqual(result.code, OK, str(result))
        self.assertIn('"text":"last\\n"', result.out)
        self.assertEqual(
            text(home.run("logs", snapshot).records),
            {("talk", "stdout"): "first\nlast\n", ("talk", "stderr"): "problem\n"},
        )
        self.assertEqual(home.run("logs", snapshot, "--plugin", "fine").records, [])
        ((crawl,),) = home.sql("select id from holdfast.crawl")
        self.assertEqual(len(text(home.run("logs", crawl).records)), 2)

    def test_what_a_hook_left_is_seen_when_it_has_ended_and_its_page_has_not(self):
        home = self.worker_place()
        home.hook("good", "on_Snapshot__50_good.sh", "echo said; echo 12345 >good.txt")
        home.hook("bad", "on_Snapshot__60_bad.sh", "echo 'it <broke>' >&2; exit 3")
        home.hook("slow", "on_Snapshot__70_slow.sh", "gate slow; echo x >slow.txt")
        home.work()
        home.queue("https://site.test/talk", plugins="good,bad,slow")
        until("the last hook runs", lambda: home.arrived("slow"))
        ((snapshot,),) = home.sql("select id from holdfast.snapshot")
        want = {"good": ("succeeded", 0), "bad": ("failed", 3), "slow": ("started", None)}

        def seen(results):
            return {one["plugin"]: (one["status"], one["exit_code"]) for one in results}

        until(
            "they are told of",
            lambda: home.sql("select count(*) from holdfast.v_result where exit_code = 3") == [["1"]],
        )
        results = [record for record in home.run("show", snapshot).records if "plugin" in record]
        self.assertEqual(seen(results), want)
        (good,) = (one for one in results if one["plugin"] == "good")
        self.assertEqual((good["output_bytes"], good["error"]), (6, ""))
        self.assertGreaterEqual(good["wall_ms"], 0)
        self.assertEqual(seen(home.run("list", "results").records), want)
        logs = home.run("logs", snapshot).records
        self.assertEqual([(one["plugin"], one["text"]) for one in logs], [("bad", "it <broke>\n")])  # good leaves none
        server = home.start("serve", env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"})
        try:
            address = re.search(r"http://[^/]+", server.stdout.readline()).group()

            def get(path):
                with urllib.request.urlopen(address + path, timeout=30) as answer:
                    return answer.read().decode()

            self.assertEqual(seen(json.loads(get(f"/api/v1/results?snapshot={snapshot}"))["items"]), want)
            for text in (
                get(f"/snapshot/{snapshot}"),
                json.loads(get(f"/live.json?at=/snapshot/{snapshot}"))["sections"]["results"],
            ):
                self.assertIn("it &lt;broke&gt;", text)
                self.assertRegex(text, r"good</td>.*Succeeded.*6 B")
        finally:
            server.terminate()
            home.finish(server)
        home.open("slow")
        until("it is sealed", lambda: home.sql("select outcome from holdfast.snapshot_sealed") == [["partial"]])
        want["slow"] = ("succeeded", 0)
        results = [record for record in home.run("show", snapshot).records if "plugin" in record]
        self.assertEqual(seen(results), want)
