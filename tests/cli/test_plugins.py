"""Plugins of this machine: what is installed below the data directory is found, listed, switched and explained."""

import json
import unittest

from harness.case import CONFIGURATION, FAILED_WORK, USAGE, Case
from harness.collection import Embedded


class Plugins(Case):
    def setUp(self):
        self.home = Embedded()
        self.addCleanup(self.home.close, self)
        del self.home.environment["HOLDFAST_PLUGINS_BUILT_IN"]
        del self.home.environment["HOLDFAST_PLUGINS_PATH"]  # those that come with the program, and those installed

    def install(self, plugin, hook, needs=(), options=None):
        """As an installer leaves it."""
        at = self.home.data / "lib/own"
        directory = at / "plugins" / plugin
        directory.mkdir(parents=True)
        switch = {"type": "boolean", "default": True}
        (directory / "config.json").write_text(
            json.dumps({"properties": {f"{plugin.upper()}_ENABLED": switch}, "required_binaries": list(needs)})
        )
        file = directory / "on_Snapshot__50_hook.sh"
        file.write_text("#!/bin/sh\n" + hook)
        file.chmod(0o755)
        (at / "options.json").write_text(json.dumps(options or {}))

    def listed(self):
        result = self.home.holdfast("plugins", "list")
        return {record["name"]: record for record in result.records}

    def test_further_plugins_are_added_and_replace_those_of_their_name(self):
        self.install("extra", "echo installed >extra.txt\n")
        own = self.home.path / "own"
        for plugin in ("extra", "mine", "title"):
            hook = own / plugin / "on_Snapshot__50_hook.sh"
            hook.parent.mkdir(parents=True)
            hook.write_text("#!/bin/sh\n")
            hook.chmod(0o755)
        self.home.environment["HOLDFAST_PLUGINS_PATH"] = str(own)
        added = self.listed()
        self.assertLess({"wget", "browser", "extra", "mine"}, set(added))
        self.assertEqual(
            {added[name]["directory"] for name in ("extra", "mine", "title")},
            {str(own / n) for n in ("extra", "mine", "title")},
        )
        self.home.environment["HOLDFAST_PLUGINS_BUILT_IN"] = "false"
        self.assertEqual(set(self.listed()), {"extra", "mine", "title"})

    def test_installed_plugins_run_with_the_options_of_their_set(self):
        self.install("extra", 'echo "$EXTRA_BINARY" >extra.txt\n', options={"EXTRA_BINARY": "/opt/extra"})
        self.install_lacking()
        plugins = self.listed()
        self.assertEqual((plugins["extra"]["enabled"], plugins["extra"]["lacks"]), (True, ""))
        self.assertIn("no-such-program-here", plugins["lacking"]["lacks"])
        self.assertTrue(plugins["browser"]["hooks"])  # of those that come with the program
        self.home.holdfast("add", "-p", "extra", "https://site.test/extra")
        [file] = self.home.data.glob("archive/*/*/*/*/a*/extra/extra.txt")
        self.assertEqual(file.read_text(), "/opt/extra\n")
        shown = self.home.run("config", "--plugin", "extra").records
        self.assertEqual({r["key"] for r in shown}, {"EXTRA_ENABLED"})

    def install_lacking(self):
        directory = self.home.data / "lib/own/plugins/lacking"
        directory.mkdir()
        needs = [{"name": "no-such-program-here", "binproviders": "env,apt"}]
        (directory / "config.json").write_text(json.dumps({"required_binaries": needs}))
        file = directory / "on_Snapshot__50_hook.sh"
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)

    def test_plugins_are_switched(self):
        self.install("extra", "echo x >extra.txt\n")
        for on in (False, True):
            done = self.home.holdfast("plugins", "enable" if on else "disable", "extra", "wget")
            self.assertEqual([(r["name"], r["enabled"]) for r in done.records], [("extra", on), ("wget", on)])
            plugins = self.listed()
            self.assertEqual((plugins["extra"]["enabled"], plugins["wget"]["enabled"]), (on, on))
        self.check_error(self.home.run("plugins", "disable", "extr"), USAGE, "extr")
        (self.home.data / "lib/plugins.json").write_text("[1]")
        self.check_error(self.home.run("plugins", "list"), CONFIGURATION, "plugins.json")

    def test_the_plan_of_an_installation_changes_nothing(self):
        done = self.home.holdfast("plugins", "install", "abx", "--dry-run")
        for word in ("-m venv", "abx-plugins", str(self.home.data / "lib/abx")):
            self.assertIn(word, done.out)
        self.assertFalse((self.home.data / "lib").exists())
        # Without an answer nothing is installed.
        done = self.home.holdfast("plugins", "install", "abx", expect=FAILED_WORK)
        self.assertIn("--yes", done.err)
        self.assertFalse((self.home.data / "lib").exists())
        self.check_error(self.home.run("plugins", "install", "other"), USAGE, "abx")


if __name__ == "__main__":
    unittest.main()
