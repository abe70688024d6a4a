"""A collection of a suite's own: a directory with plugins, and the holdfast processes that work on it."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from .wait import until


class Collection:
    """Leaving the context kills the processes and removes the directory. A suite's class says the environment."""

    def __init__(self, program, suite):
        self.program = program
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"holdfast-{suite}-"))
        self.directory.chmod(0o711)
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.log.close()
        self.end_sessions()
        self.release()
        shutil.rmtree(self.directory, ignore_errors=True)

    def end_sessions(self):
        """Ends what those that were killed have left: workers of a runner, above all."""
        sessions = {process.pid for process in self.processes}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text().rpartition(")")[2].split()[3]) in sessions:
                    os.kill(int(stat.parent.name), signal.SIGKILL)

    def release(self):
        """Gives up the database, after the processes have ended."""

    def environment(self, address=None, **settings):
        """Of a process. `address`: where it finds the database."""
        raise NotImplementedError

    def hook(self, plugin, name, text):
        directory = self.directory / "plugins" / plugin
        directory.mkdir(parents=True)
        (directory / "config.json").write_text("{}")
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)

    def start(self, *arguments, machine=None, address=None, **settings):
        """A process of holdfast, on this machine or in the network of another one."""
        enter = ["ip", "netns", "exec", machine.name] if machine else []
        log = open(self.directory / f"log{len(self.processes)}", "w+", encoding="utf-8")
        process = subprocess.Popen(
            [*enter, self.program, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self.directory,
            env=self.environment(machine.address if machine else address, **settings),
            start_new_session=True,
        )
        process.log = log
        self.processes.append(process)
        return process

    def holdfast(self, *arguments, expect=0, **settings):
        """Runs a command to its end; fails unless it exits with `expect` (None: whatever it exits with)."""
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.directory,
            env=self.environment(**settings),
            timeout=120,
            check=False,
        )
        if expect is not None and done.returncode != expect:
            words = " ".join(map(str, arguments))
            raise AssertionError(
                f"holdfast {words}: exit {done.returncode} instead of {expect}\n{done.stdout}{done.stderr}"
            )
        return done

    def lines(self, *arguments, **settings):
        return [json.loads(line) for line in self.holdfast(*arguments, **settings).stdout.splitlines()]

    def log_of(self, process):
        process.log.flush()
        return pathlib.Path(process.log.name).read_text(encoding="utf-8", errors="replace")

    def logs(self):
        return "".join(f"--- {p.args} ({p.poll()})\n{self.log_of(p)[-3000:]}" for p in self.processes)

    def until(self, what, condition, seconds=60):
        return until(what, condition, seconds, self.logs)
