#!/usr/bin/env python3
"""Clients that watch one crawl: what they cost in memory, CPU and queries. bench_watchers.py PROGRAM [CLIENTS]"""

import os
import resource
import socket
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ["HOLDFAST_TEST_PROGRAM"] = str(Path(sys.argv[1]).resolve())

from harness.case import Case
from harness.wait import until# noqa: E402
from test_pages import Site  # noqa: E402

CLIENTS = int(sys.argv[2]) if len(sys.argv) > 2 else 500
SECONDS = 20


class Bench(Case):
    def runTest(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        site = Site(self)
        self.addCleanup(site.close)
        crawl = site.place.run("add", "--bg", *(f"http://127.0.0.1:9/{n}" for n in range(200))).records[0]["id"]

        def figures():
            status = Path(f"/proc/{site.process.pid}/status").read_text()
            ticks = Path(f"/proc/{site.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            done = site.place.run(
                "psql", "-XAtc", "select xact_commit from pg_stat_database where datname = current_database()"
            )
            memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
            return memory, (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK"), int(done.out)

        def measure(name):
            began, before = time.monotonic(), figures()
            time.sleep(SECONDS)
            after, took = figures(), time.monotonic() - began
            print(
                f"{name}: {after[0]:.0f} MiB, {(after[1] - before[1]) / took:.2f} s CPU/s, "
                f"{(after[2] - before[2]) / took:.1f} transactions/s in the whole database",
                flush=True,
            )

        measure("none watches, nothing happens")
        wires = []
        for _ in range(CLIENTS):
            wire = socket.create_connection(("127.0.0.1", site.port), timeout=30)
            wire.sendall(f"GET /live?at=/crawl/{crawl} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n\r\n".encode())
            wires.append(wire)
            if len(wires) % 20 == 0:
                until("they are answered", lambda: b"200 OK" in wires[-1].recv(65536))
        measure(f"{CLIENTS} watch, nothing happens")
        worker = site.place.start("run", "--daemon")
        measure(f"{CLIENTS} watch, 200 pages are archived; they read nothing")
        worker.terminate()
        site.place.finish(worker)
        print(f"still answers: {site.get('/').status}")
        for wire in wires:
            wire.close()


if __name__ == "__main__":
    import unittest

    unittest.main(argv=sys.argv[:1])
