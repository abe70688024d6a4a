"""What holds for every starter plugin."""

import json
import os
import re
import signal
import time

from support import HookTest, all_plugins, hook_file, needs_wget, processes_of

BY_BROWSER = ("browser", "screenshot", "pdf", "dom")
WITHOUT_BROWSER = [plugin for plugin in all_plugins() if plugin not in BY_BROWSER]


class Contract(HookTest):
    def test_the_starter_set_is_complete(self):
        expected = {
            "browser",
            "headers",
            "wget",
            "favicon",
            "screenshot",
            "pdf",
            "dom",
            "title",
            "text",
            "outlinks",
            "playlist",
            "hashes",
        }
        self.assertEqual(set(all_plugins()), expected)

    def test_every_hook_is_an_executable_with_a_proper_name(self):
        for plugin in all_plugins():
            file = hook_file(plugin)
            self.assertRegex(file.name, rf"^on_Snapshot__\d\d_{plugin}(\.daemon\.bg)?$")
            self.assertTrue(os.access(file, os.X_OK), file)

    def test_every_config_describes_its_plugin(self):
        for plugin in all_plugins():
            config = json.loads((hook_file(plugin).parent / "config.json").read_text())
            self.assertEqual(config["type"], "object")
            self.assertTrue(config["title"] and config["description"] and config["output_mimetypes"])
            properties = config["properties"]
            self.assertIs(properties[f"{plugin.upper()}_ENABLED"]["default"], plugin != "playlist")
            self.assertGreater(properties[f"{plugin.upper()}_TIMEOUT"]["default"], 0)
            for name, schema in properties.items():
                self.assertRegex(name, r"^[A-Z][A-Z0-9_]*$")
                self.assertTrue(schema["description"], name)
                kinds = {"boolean": bool, "integer": int, "number": (int, float), "string": str, "array": list}
                self.assertIsInstance(schema["default"], kinds[schema["type"]], name)
                if "pattern" in schema:
                    self.assertRegex(schema["default"], schema["pattern"])
            for binary in config.get("required_binaries", []):
                reference = re.fullmatch(r"\{(\w+)\}", binary["name"])
                if reference:
                    self.assertIn(reference[1], properties)

    def test_a_url_that_is_not_http_has_no_results(self):
        for plugin in all_plugins():
            for url in ("ftp://example.org/", "file:///etc/passwd", "archivebox://internal"):
                self.assert_status(self.run_hook(plugin, url), "noresults")

    def test_a_missing_program_skips_the_hook_and_names_the_package(self):
        for plugin, package in (
            ("wget", "wget"),
            *((name, "chromium-headless-shell") for name in ("dom", "screenshot", "pdf")),
        ):
            outcome = self.run_hook(plugin, "/article.html", PATH=self.path_with())
            self.assert_status(outcome, "skipped")
            self.assertIn(f"{package} is not installed (apt install {package})", outcome.output)

    def test_a_host_that_does_not_answer_is_a_failure(self):
        for plugin in all_plugins():
            if plugin not in ("hashes", "favicon"):
                outcome = self.run_hook(plugin, "http://127.0.0.1:9/nothing", TIMEOUT="20")
                self.assertIn(outcome.status, ("failed", "skipped"), f"{plugin}: {outcome.result}")

    def test_a_bad_setting_is_named(self):
        self.assert_failed(self.run_hook("wget", "/article.html", WGET_MAX_SIZE="much"), "WGET_MAX_SIZE")
        self.assert_failed(self.run_hook("title", "/article.html", TITLE_TIMEOUT="soon"), "TITLE_TIMEOUT")

    def test_no_hook_writes_outside_its_directory(self):
        for plugin in WITHOUT_BROWSER:
            self.run_hook(plugin, "/article.html")
        found = {path.name for path in self.snapshot.iterdir()}
        self.assertEqual(found, set(WITHOUT_BROWSER))
        self.assertEqual([str(path) for path in self.temporary.iterdir()], [])

    def test_a_second_run_replaces_the_first(self):
        for plugin in WITHOUT_BROWSER:
            if plugin != "hashes":
                first = self.run_hook(plugin, "/article.html")
                names = sorted(path.relative_to(first.directory) for path in first.directory.rglob("*"))
                second = self.run_hook(plugin, "/article.html")
                self.assertEqual(first.status, second.status)
                self.assertEqual(
                    names, sorted(path.relative_to(first.directory) for path in first.directory.rglob("*"))
                )


class Stopping(HookTest):
    """Asked to stop, a hook ends at once, prints no result, and leaves no process behind."""

    def stop_while_waiting(self, plugin, sign, path="/slow?seconds=60"):
        process = self.start(plugin, self.url(path))
        deadline = time.monotonic() + 30
        while not sign():
            self.assertLess(time.monotonic(), deadline, f"{plugin} did not get going")
            self.assertIsNone(process.poll(), f"{plugin} ended early")
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        outcome = self.finish(plugin, process, limit=45)  # well before the server answers
        self.assertEqual(outcome.code, 143)
        self.assertEqual(outcome.records, [])
        self.assertEqual(processes_of(self.snapshot, self.temporary), [])

    @needs_wget
    def test_wget(self):
        log = self.snapshot / "wget" / "wget.log"
        self.stop_while_waiting("wget", lambda: log.exists() and b"awaiting response" in log.read_bytes())
