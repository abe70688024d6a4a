"""The same real plugins on the same pages of the local test site: through holdfast, through abx-dl, and the hooks run
by hand."""

import concurrent.futures
import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import suite

SLOTS = 2
CHEAP = ["wget", "title", "headers", "favicon"]
SETS = {
    "wget, favicon (no browser)": ["wget", "favicon"],
    "wget, title, headers, favicon, Chrome, screenshot, pdf, dom": [*CHEAP, "chrome", "screenshot", "pdf", "dom"],
}


def compat_tools(directory):
    """What tests/compat installs: ArchiveBox's plugins, and abx-dl."""
    loader = importlib.machinery.SourceFileLoader("compat", str(suite.ROOT / "tests/compat/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compat", loader))
    loader.exec_module(module)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        return module.Tools(directory)
    except SystemExit:
        raise suite.Missing("ArchiveBox's plugins could not be installed") from None


def through_holdfast(bench, plugins, directory, options, urls):
    """From the first claim to the last seal, on a worker that runs already."""
    with bench.server.database(bench.migrated()) as database, bench.scratch() as scratch:
        settings = {"HOLDFAST_WORKER_SNAPSHOTS": str(SLOTS)}
        (scratch / "holdfast.yaml").write_text(
            "hooks:\n" + "".join(f"  {key}: {json.dumps(value)}\n" for key, value in options.items())
        )
        with suite.Program(
            bench, database, scratch, "worker", plugins=directory, settings=settings.items()
        ) as worker, bench.server.session(database) as session:
            worker.joined(session)
            crawl = {"plugins": plugins}
            text = "array[" + ",".join(f"'{url}'" for url in urls) + "]"
            session.ask(
                f"begin; select holdfast.crawl_add('{uuid.uuid4()}', $json${json.dumps(crawl)}$json$); "
                f"select holdfast.crawl_add_seeds(id, {text}, '{{}}', null) from holdfast.crawl; commit"
            )
            suite.until(
                "all is sealed", lambda: session.ask("select 1 from holdfast.crawl where status = 'sealed'"), 600
            )
            bad = session.ask(
                "select plugin || ': ' || error from holdfast.archive_result where status = 'failed' limit 1"
            )
            if bad:
                raise RuntimeError("a hook failed through holdfast: " + bad)
            seconds, own = session.ask(
                """select extract(epoch from max(sealed_at) - min(started_at)) || ' ' ||
              (select avg(t) from (select extract(epoch from max(ended_at) - min(started_at)) as t
                                     from holdfast.archive_result group by snapshot_id) r)
              from holdfast.snapshot_sealed"""
            ).split()
    return len(urls) * 60 / float(seconds), float(own)


def in_turns(work, urls):
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(work, range(len(urls)), urls))
    return len(urls) * 60 / (time.monotonic() - started)


def through_abx_dl(bench, tools, plugins, urls):
    with bench.scratch() as scratch:
        library = scratch / "lib/pnpm/packages/chrome"
        library.mkdir(parents=True)
        (library / "node_modules").symlink_to(tools.modules)

        def one(n, url):
            home = scratch / f"home{n}"
            home.mkdir()
            # TMPDIR: it leaves directories there.
            environment = {
                **os.environ,
                "HOME": str(home),
                "TMPDIR": str(home),
                "DATA_DIR": str(home / "data"),
                "ABXPKG_LIB_DIR": str(scratch / "lib"),
                "NODE_PATH": str(tools.modules),
                **tools.options,
            }
            suite.run(
                [tools.abx_dl, "dl", "--no-install", "--plugins=" + ",".join(plugins), "-d", home / "out", url],
                300,
                env=environment,
            )
            if not list((home / "out").rglob("index.jsonl")):
                raise RuntimeError("abx-dl left no index")

        return in_turns(one, urls)


def by_hand(bench, plugins, urls):
    """The starter plugins' hooks, one after the other as their numbers say, and nothing else."""
    hooks = sorted(
        (hook.name.split("__")[1], hook)
        for name in plugins
        for hook in (suite.ROOT / "deploy/plugins" / name).glob("on_Snapshot__*")
    )
    with bench.scratch() as scratch:

        def one(n, url):
            for _, hook in hooks:
                directory = scratch / f"page{n}" / hook.parent.name
                directory.mkdir(parents=True)
                path = f"{Path(bench.program('holdfast')).parent}:{os.environ['PATH']}"
                environment = {
                    **os.environ,
                    "PATH": path,
                    "SNAP_DIR": str(directory.parent),
                    "SNAPSHOT_DIR": str(directory.parent),
                }
                suite.run([hook, "--url=" + url], 60, cwd=directory, env=environment)

        return in_turns(one, urls)


def measure(bench, figures):
    tools = None
    with figures.attempt("ArchiveBox's plugins"):
        tools = compat_tools(bench.tools_directory / "compat")
    site = subprocess.Popen([sys.executable, suite.ROOT / "tests/site/site.py"], stdout=subprocess.PIPE, text=True)
    try:
        url = site.stdout.readline().strip()
        pages = lambda count: [f"{url}leaf/{n + 1}" for n in range(count)]
        for repeat in range(bench.repeats):
            step = lambda what: bench.say(f"end to end {repeat + 1}/{bench.repeats}: {what}")
            label = "Holdfast's own wget, title, headers, favicon"
            with figures.attempt(label):
                step(label)
                rate, _ = through_holdfast(bench, CHEAP, suite.ROOT / "deploy/plugins", {}, pages(bench.pick(20, 100)))
                figures.add("holdfast: " + label, "snapshots/min", rate)
                figures.add("by hand: " + label, "snapshots/min", by_hand(bench, CHEAP, pages(bench.pick(20, 100))))
            for label, plugins in SETS.items() if tools else ():
                urls = pages(bench.pick(6, 20))
                with figures.attempt("holdfast: " + label):
                    step("holdfast: " + label)
                    rate, own = through_holdfast(bench, plugins, tools.plugins, tools.options, urls)
                    figures.add("holdfast: " + label, "snapshots/min", rate)
                    figures.add("if only the hooks took time: " + label, "snapshots/min", SLOTS * 60 / own)
                with figures.attempt("abx-dl: " + label):
                    step("abx-dl: " + label)
                    if not tools.abx_dl:
                        raise suite.Missing("abx-dl needs Python 3.12")
                    figures.add("abx-dl: " + label, "snapshots/min", through_abx_dl(bench, tools, plugins, urls))
    finally:
        site.send_signal(signal.SIGTERM)
        site.wait(30)
    figures.ratio(
        "holdfast: Holdfast's own wget, title, headers, favicon",
        "by hand: Holdfast's own wget, title, headers, favicon",
    )
    for label in SETS:
        figures.ratio("holdfast: " + label, "abx-dl: " + label, target=1)
        figures.ratio("holdfast: " + label, "if only the hooks took time: " + label)
