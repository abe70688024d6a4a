"""Everything that runs can be seen in the database: servers, imports and exports beside workers, and what a hook was
started with."""

import contextlib
import json
import os
import signal
import unittest
import urllib.request

from archivebox_directory import Directory
from harness.wait import free_port, until
from harness.case import OK, REFUSED, UNAVAILABLE, Case
from harness.collection import SHORT_LEASE


class Processes(Case):
    def setUp(self):
        self.home = self.place()
        self.home.environment.update(SHORT_LEASE)
        # Keeps the server up, and gives away what others leave.
        self.holder = self.home.start("worker", env={"HOLDFAST_DISK_MINIMUM_FREE": "1000t"})
        until("the worker runs", lambda: self.holder.poll() is None and self.sql("select 1 from v_worker") == "1")
        self.addCleanup(self.end, self.holder)

    def end(self, process):
        if process.poll() is None:
            process.terminate()
        return self.home.finish(process)

    def sql(self, text):
        return self.home.run("psql", "--role", "owner", "-At", "-c", text).out.strip()

    def records(self, *arguments):
        result = self.home.holdfast(*arguments)
        return result.records

    def states(self, type_):
        """State and label of each that runs, the oldest first."""
        return self.sql(
            "select v.state from v_process v join v_worker w on w.id = v.process_id "
            f"where w.process_type = '{type_}' order by w.started_at"
        ).splitlines()

    def test_a_server_is_a_process_and_another_stands_by(self):
        port, files = free_port(), free_port()
        place = {"HOLDFAST_SERVE_LISTEN": f"127.0.0.1:{port}", "HOLDFAST_SERVE_FILES": f"127.0.0.1:{files}"}

        def answers():
            with contextlib.suppress(OSError):  # it does not listen yet
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
                    return answer.status == 200

        first = self.home.start("serve", env=place)
        self.addCleanup(self.end, first)
        until("it is there", lambda: self.states("serve") == ["runs"])
        until("it answers", answers)
        [row] = [w for w in self.records("list", "workers") if w["process_type"] == "serve"]
        self.assertEqual((row["pid"], row["worker_type"]), (first.pid, f"127.0.0.1:{port}"))
        self.assertIn(f"It answers requests on 127.0.0.1:{port}", self.home.run("why", row["id"]).out)
        self.check_error(self.home.run("drain", row["id"]), REFUSED, "no worker or runner")
        self.check_error(self.home.run("serve", env=place), UNAVAILABLE, "cannot listen")

        second = self.home.start("serve", "--standby", env=place)
        self.addCleanup(self.end, second)
        until("it stands by", lambda: self.states("serve") == ["runs", "stands by"])
        self.assertEqual(self.end(first).code, OK)
        until("it has taken over", answers)
        until("it says so", lambda: self.states("serve") == ["runs"])
        self.assertEqual(self.sql(f"select exit_reason from v_worker where pid = {first.pid}"), "done")
        os.kill(second.pid, signal.SIGKILL)
        self.home.finish(second)
        until(
            "its lease has lapsed",
            lambda: self.sql(f"select exit_reason from v_worker where pid = {second.pid}") == "lease lapsed",
        )
        # That was no worker.
        self.assertEqual(self.sql("select workers_lapsed from v_status"), "0")

    def test_long_commands_are_processes(self):
        self.home.holdfast("import", "archivebox", Directory(self.home.path / "old", "0.7", 5).data)
        self.assertEqual(self.home.run("verify", "--all").code, OK)
        self.assertEqual(self.home.run("export", "--all", "-o", self.home.path / "all.wacz").code, OK)
        self.assertEqual(self.home.run("adopt").code, OK)
        self.assertEqual(self.home.run("search", "--rebuild").code, OK)
        self.assertEqual(self.records("check"), [])
        rows = self.sql(
            "select worker_type || ' ' || status || ' ' || exit_reason from v_worker "
            "where process_type = 'command' order by started_at"
        )
        commands = ("import", "verify", "export", "adopt", "search --rebuild", "check")
        self.assertEqual(rows.splitlines(), [f"{command} exited done" for command in commands])

    def test_what_a_hook_was_started_with(self):
        (self.home.plugins / "page/config.json").write_text(
            json.dumps({"properties": {"PAGE_COLOUR": {"type": "string"}, "PAGE_KEY": {"x-sensitive": True}}})
        )
        self.home.hook("page", "on_Snapshot__10_page.sh", "gate stays; [[ $PAGE_KEY == hunter2 && $OWN == hunter2 ]]")
        secrets = {"OWN": "hunter2", "HOLDFAST_PLUGINS_ENVIRONMENT": "OWN", "HOLDFAST_DISK_MINIMUM_FREE": "0"}
        config = self.home.path / "holdfast.yaml"
        config.write_text("hooks: {PAGE_KEY: hunter2, PAGE_COLOUR: red}\n")
        added = self.home.run("add", "--bg", "https://site.test/page").records[0]["id"]
        work = self.home.start("--config", config, "run", env=secrets)
        self.addCleanup(self.end, work)
        until("the hook runs", lambda: self.home.arrived("stays"))
        running = until("it is told", lambda: self.sql("select started_with from v_running"))
        self.home.open("stays")
        self.assertEqual(self.home.finish(work).code, OK)
        self.assertNotIn("hunter2", running)
        told = json.loads(running)
        self.assertEqual(told["environment"]["PAGE_COLOUR"], "red")
        self.assertEqual((told["environment"]["PAGE_KEY"], told["environment"]["OWN"]), ("(set)", "(set)"))
        self.assertEqual(told["directory"], told["environment"]["SNAP_DIR"] + "/page")
        self.assertTrue(told["command"][0].endswith("/page/on_Snapshot__10_page.sh"), told)
        page = self.sql("select id from v_snapshot")
        self.assertEqual(told["command"][-2:], ["--url=https://site.test/page", f"--snapshot-id={page}"])
        self.assertEqual(told["environment"]["TIMEOUT"], "60")

        # Afterwards it is told of those that failed.
        self.home.hook("page", "on_Snapshot__20_fails.sh", "exit 3")
        self.assertEqual(self.home.run("retry", added).code, OK)
        self.assertEqual(self.home.run("--config", config, "run", env=secrets).code, OK)
        told = self.sql(
            "select hook_name, started_with -> 'command' ->> 0 from v_result where started_with is not null"
        )
        [(name, command)] = [line.split("|") for line in told.splitlines()]
        self.assertEqual(name, "on_Snapshot__20_fails")
        self.assertTrue(command.endswith("on_Snapshot__20_fails.sh"), command)
        everything = self.sql("select string_agg(r::text, ' ') from archive_result r")
        self.assertNotIn("hunter2", everything)


if __name__ == "__main__":
    unittest.main()
