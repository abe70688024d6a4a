"""What an export holds in memory and how long it takes, with 10^3, 10^4 and 10^5 captures; also their import, and what
the rows of the index add to the seal of a page."""

import gzip
import os
import subprocess
import time

PER_PAGE = 100  # a page and what it loads
MOST_MEMORY = 128  # MiB, whatever is exported: 64 MiB of the index are sorted in memory
INDEXED = 30  # captures of a usual page
CAPTURES = f"""(select jsonb_agg(jsonb_build_object(
  'file', 'browser/' || txid_current() || '.warc.gz', 'record_offset', n * 5000, 'record_length', 5000,
  'url_key', 'example,site)/' || txid_current() || '/' || n, 'at', '2026-01-01T00:00:00Z',
  'url', 'http://site.example/' || txid_current() || '/' || n, 'status', 200, 'mime', 'image/png',
  'digest', 'sha1:' || md5(txid_current() || '-' || n))) from generate_series(1, {INDEXED}) n)"""
RECORD = (
    "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
    "WARC-Date: 2026-01-01T{clock}Z\r\nWARC-Target-URI: {url}\r\n"
    "Content-Type: application/http;msgtype=response\r\nContent-Length: {length}\r\n\r\n"
)


def write_warc(path, captures):
    """Pages with a style sheet and pictures of their own, each record a gzip member."""
    with open(path, "wb") as file:
        for number in range(captures):
            page, part = divmod(number, PER_PAGE)
            if part == 0:
                kind = "text/html"
                body = f"<!doctype html><title>Page {page}</title><p>" + f"words of page {page} " * 50
            else:
                kind = "image/png"
                body = os.urandom(700).hex()
            url = f"http://site{page % 97}.example/{page}" + (f"/{part}.png" if part else "")
            block = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            clock = f"{page // 3600 % 24:02}:{page // 60 % 60:02}:{page % 60:02}"
            head = RECORD.format(number=number, clock=clock, url=url, length=len(block)).encode()
            file.write(gzip.compress(head + block + b"\r\n\r\n", 1))


def run(bench, environment, directory, *arguments):
    """Seconds and the peak of resident memory in MiB of a command and of what it started."""
    began = time.monotonic()
    with open(directory / "log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [bench.program("holdfast"), *map(str, arguments)], env=environment, stdout=log, stderr=log, cwd=directory
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            log.seek(0)
            raise RuntimeError(f"{arguments}: exit {process.returncode}: {log.read()[-500:]}")
    return time.monotonic() - began, usage.ru_maxrss / 1024


def index(bench, figures, database, scratch):
    """The rows of a page's captures, as the seal writes them; beside the same JSON alone."""
    page = bench.server.sql(database, "select snapshot_id, crawl_id from holdfast.snapshot_sealed limit 1").split("|")
    calls = bench.pick(500, 3000)
    alone, added = f"the JSON of {INDEXED} captures alone", f"index rows of a page with {INDEXED} captures"
    for _ in range(bench.repeats):
        for name, what in (
            (alone, f"select {CAPTURES};\n"),
            (added, f"select holdfast.captures_add('{page[0]}', '{page[1]}', {CAPTURES});\n"),
        ):
            seconds, cpu = bench.server.pgbench(database, what, 1, calls, scratch)
            figures.add(name, "ms", seconds * 1000 / calls, cpu * 1e6 / calls)
    figures.ratio(added, alone)


def measure(bench, figures):
    sizes = bench.pick((1_000, 10_000), (1_000, 10_000, 100_000))
    for size in sizes:
        with figures.attempt(f"{size} captures"), bench.scratch() as scratch:
            bench.say(f"export: importing {size:,} captures")
            with bench.server.database(bench.migrated()) as database:
                environment = bench.environment(database, scratch)
                write_warc(scratch / "site.warc.gz", size)
                seconds, memory = run(bench, environment, scratch, "import", "warc", scratch / "site.warc.gz")
                figures.add(f"import of {size:,} captures", "s", seconds)
                figures.add(f"import of {size:,} captures, peak memory", "MiB", memory)
                for kind, name in (("wacz", "all.wacz"), ("warc", "warcs"), ("files", "files.zip")):
                    bench.say(f"export: {size:,} captures as {kind}")
                    seconds, memory = run(
                        bench, environment, scratch, "export", "--all", "--format", kind, "-o", scratch / name
                    )
                    figures.add(f"export of {size:,} captures as {kind}", "s", seconds)
                    figures.add(f"export of {size:,} captures as {kind}, peak memory", "MiB", memory)
                    figures.target(f"export of {size:,} captures as {kind}, peak memory", MOST_MEMORY, less=True)
                if size == sizes[0]:
                    index(bench, figures, database, scratch)
