#!/usr/bin/env -S python3 -IB
"""The page with everything it shows, by wget, as files and as a WARC.

wget/<host>/...          the page and its requisites, links made local
wget/warc/page.warc.gz   the exchanges as they were, for replay
wget/page.json           where the page itself was saved, for the plugins after this one
"""

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import hook
import page
import warc
import wget_log

# wget cannot be told to leave the machines inside alone, only which URLs not to follow.
PRIVATE_URLS = (
    r"^https?://([^/@]*@)?(localhost|[^/:]*\.localhost|0\.|10\.|127\.|169\.254\.|192\.168\.|172\.(1[6-9]|2[0-9]|3[01])\."
    r"|\[(::|f[cd]|fe[89ab]))"
)


def wget(job):
    program = job.program("WGET_BINARY", ["wget"], "wget")
    limit = job.size("WGET_MAX_SIZE", "1g")
    log_file = job.out / "wget.log"
    (job.out / "warc").mkdir(exist_ok=True)
    limit_file_size(limit)
    status, timed_out = run_wget(job, [program, *arguments(job, limit, log_file)])
    exchanges = wget_log.parse(log_file)
    main = wget_log.main_exchange(exchanges)
    led = exchanges[: exchanges.index(main) + 1] if main in exchanges else []
    report_rate_limits(job, led)
    for exchange in led[:-1]:
        if exchange.redirect:
            job.report_redirect(exchange.url, exchange.redirect, exchange.status)
    job.report_response(main.url or job.url, main.status, main.header("content-type"))
    path = main.saved_to
    kept = job.out / path if path else None
    size = kept.stat().st_size if kept and kept.is_file() else 0
    check_completeness(job, main, size)

    original = path + ".orig"  # before the links in it were made local
    page.describe(
        job,
        "page.json",
        main.url or job.url,
        main.status,
        main.header("content-type"),
        original if path and (job.out / original).is_file() else path,
        main.complete,
    )
    about = {
        "url": main.url,
        "status": main.status,
        "content_type": main.header("content-type"),
        "files": sum(1 for exchange in exchanges if exchange.complete),
        "missing": wget_log.missing(exchanges)[:50],
    }
    if status == -signal.SIGXFSZ:
        raise hook.Failed(f"a file is larger than WGET_MAX_SIZE ({limit} bytes); kept its beginning", about)
    if main.unreachable and not main.status:
        raise hook.Unreachable(f"{urlsplit(main.url).netloc}: {main.error}", about)
    if timed_out:
        what = "the page is whole, not all it shows" if main.complete else f"kept {size} bytes of the page"
        raise hook.Failed(f"timed out after {job.timeout:g} s; {what}", about)
    if main.status and main.status >= 400:
        raise hook.Failed(f"HTTP {main.status}", about)
    if not main.complete:
        raise hook.Failed(main.error or f"wget ended with status {status}", about)
    return path, about


def arguments(job, limit, log_file):
    result = [
        "--no-config",
        f"--output-file={log_file}",
        "--server-response",
        "--progress=dot:giga",
        "--page-requisites",
        "--span-hosts",
        "--convert-links",
        "--backup-converted",
        "--adjust-extension",
        "--force-directories",
        "--restrict-file-names=windows",
        "--execute=robots=off",
        "--compression=auto",
        "--no-hsts",
        "--max-redirect=10",
        "--tries=2",
        "--waitretry=2",
        f"--timeout={max(1, min(30, int(job.remaining())))}",
        f"--quota={limit}",
    ]
    if job.flag("WGET_WARC", True):
        result += ["--warc-file=warc/page", "--warc-tempdir=warc", "--no-warc-keep-log"]
    if job.setting("USER_AGENT"):
        result.append("--user-agent=" + job.setting("USER_AGENT"))
    if job.setting("COOKIES_FILE"):
        result.append("--load-cookies=" + job.setting("COOKIES_FILE"))
    if not job.flag("CHECK_SSL_VALIDITY", True):
        result.append("--no-check-certificate")
    if not re.match(PRIVATE_URLS, job.url, re.IGNORECASE):
        result.append("--reject-regex=" + PRIVATE_URLS)
    return [*result, "--", job.url]


def limit_file_size(limit):
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run_wget(job, command):
    """Returns wget's exit status and whether it had to be stopped at the deadline."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}  # its log is read below
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
    try:
        return child.wait(job.remaining()), False
    except subprocess.TimeoutExpired:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(job.margin / 4)
        child.kill()  # in case it did not listen; nothing if it has ended
        return child.wait(), True
    finally:
        if child.poll() is None:  # we are being stopped ourselves
            child.kill()
            child.wait()


def check_completeness(job, main, size):
    """wget's log is not the whole truth about whether the page is whole."""
    if not main.complete and size and main.header("content-length") == str(size) and not main.header("content-encoding"):
        main.complete = True  # stopped before it logged so, busy with what the page asks for
    if main.complete and main.header("transfer-encoding").lower() == "chunked":
        if not warc.chunked_body_is_whole(job.out / "warc" / "page.warc.gz", main.url):
            main.complete, main.error = False, f"the page broke off after {size} bytes"


def report_rate_limits(job, exchanges):
    told = set()
    for exchange in exchanges:
        host = urlsplit(exchange.url).hostname
        if exchange.status in (429, 503) and host not in told:
            told.add(host)
            job.report_rate_limit(host, exchange.status, exchange.header("retry-after"))


hook.run("wget", wget)
