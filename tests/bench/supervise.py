"""Hooks a second, and what a hook costs: lib/process against plain posix_spawn and xargs (whose children share one
output, and so make no files)."""

import json
import os
import resource
import tempfile
import time

from suite import run


def hooks(bench, what, count, at_once, program):
    """Through bench-hooks. The files are made in memory: where thousands were removed a minute ago, ext4 looks at each of those before it
    makes another, which costs more than the processes do."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else bench.directory
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=memory) as directory:
        return json.loads(
            run(
                [bench.program("bench-hooks"), what, count, at_once, 60, *program],
                120,
                env={**os.environ, "TMPDIR": directory},
            )
        )


def xargs(count, at_once, program):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    from_ = time.monotonic()
    run(
        [
            "sh",
            "-c",
            'n=$1 p=$2; shift 2; yes x | head -n "$n" | xargs -n 1 -P "$p" -- "$@" >/dev/null',
            "sh",
            count,
            at_once,
            *program,
            "ignored",
        ],
        120,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        count / (time.monotonic() - from_),
        (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000 / count,
    )


def measure(bench, figures):
    count = bench.pick(300, 3000)
    programs = {
        "/bin/true": ["/bin/true"],
        "a script that prints a line": ["/bin/sh", "-c", 'echo \'{"type":"ArchiveResult"}\''],
    }
    shapes = [(name, at_once) for name in programs for at_once in (1, 50, 200)]
    for repeat in range(bench.repeats):
        for name, at_once in shapes:
            label = f"{name}, {at_once} at once"
            bench.say(f"supervision {repeat + 1}/{bench.repeats}: {label}")
            for title, what in (
                ("holdfast", "supervise"),
                ("holdfast, sandboxed", "sandbox"),
                ("holdfast, by rules", "rules"),
                ("posix_spawn", "spawn"),
            ):
                with figures.attempt(f"{title}: {label}"):
                    answer = hooks(bench, what, count, at_once, programs[name])
                    figures.add(f"{title}: {label}", "hooks/s", answer["hooks"] / answer["seconds"])
                    figures.add(f"{title}: {label}, CPU per hook", "ms", answer["cpu_seconds"] * 1000 / answer["hooks"])
            with figures.attempt(f"xargs -P: {label}"):
                rate, cpu = xargs(count, at_once, programs[name])
                figures.add(f"xargs -P: {label}", "hooks/s", rate)
                figures.add(f"xargs -P: {label}, CPU per hook", "ms", cpu)
            rows = [figures.rows.get(f"{title}: {label}, CPU per hook") for title in ("holdfast", "posix_spawn")]
            for title, what in (("sandboxed", "sandbox's"), ("by rules", "rules'")):
                sandboxed = figures.rows.get(f"holdfast, {title}: {label}, CPU per hook")
                if all(rows) and sandboxed:
                    figures.add(
                        f"supervision's and {what} CPU per hook: {label}",
                        "ms",
                        sandboxed["values"][-1] - rows[1]["values"][-1],
                    )
            if all(rows):
                figures.add(
                    f"supervision's own CPU per hook: {label}", "ms", rows[0]["values"][-1] - rows[1]["values"][-1]
                )
        for held in (50, 200):
            with figures.attempt(f"memory with {held} hooks"):
                answer = hooks(bench, "hold", held, held, ["/bin/sleep", "600"])
                figures.add(
                    f"memory behind a running hook, {held} at once",
                    "kB",
                    answer["shim_pss_kb"] + answer["worker_pss_kb"],
                )
    for name, at_once in shapes:
        label = f"{name}, {at_once} at once"
        figures.ratio(f"holdfast: {label}", f"posix_spawn: {label}")
        figures.ratio(f"holdfast: {label}", f"xargs -P: {label}")
        figures.target(f"supervision's own CPU per hook: {label}", 1, less=True)
        figures.target(f"supervision's and sandbox's CPU per hook: {label}", 1, less=True)
        figures.target(f"supervision's and rules' CPU per hook: {label}", 1, less=True)
