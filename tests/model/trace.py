#!/usr/bin/env python3
"""Asks Spin whether what has happened to a page in a real database can happen in the model, so that they stay one.

A trace is the list of states that the row of a page went through, [status, fence, lapses] each: status as in page.pml,
fences counted from the page's first. It becomes a claim over the model, which ends where the last state is reached.
"""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = Path(__file__).resolve().parent / "page.pml"
DEADLINE = 120  # seconds
KILLER = 1  # the page of the model that kills its workers; the other one is sealed


def refused(traces, max_lapses):
    """Those of the traces that no run of the model goes through: all states of one page, and no others between."""
    wrong = []
    # Each claim but the last has ended by a fault, or by a worker that gave the page back because of one.
    claims = lambda trace: sum(state[0] == "started" for state in trace)
    for count, alike in itertools.groupby(sorted(traces, key=claims), claims):
        bounds = [f"-DFAULTS={2 * count + 2}", f"-DMAX_LAPSES={max_lapses}", f"-DMOST_CLAIMS={count + 2}", "-DTRACE"]
        wrong += search(list(alike), bounds)
    return wrong


def search(traces, bounds):
    """The refused of these, each of which is a claim of one model."""
    claims = [claim for number, trace in enumerate(traces) for claim in claim_of(f"trace{number}", trace)]
    with tempfile.TemporaryDirectory() as place:
        Path(place, "trace.pml").write_text("\n".join([f'#include "{MODEL}"', *claims, ""]))

        def run(*command):
            return subprocess.run(
                command,
                cwd=place,
                check=True,
                timeout=DEADLINE,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ).stdout

        run("spin", *bounds, "-a", "trace.pml")
        run("gcc", "-w", "-O0", "-DCOLLAPSE", "-o", "pan", "pan.c")
        wrong = []
        for number, trace in enumerate(traces):
            report = run("./pan", "-m1000000", "-A", "-E", "-N", f"trace{number}")
            if "end state in claim reached" in report:
                continue
            if "errors: 0" not in report or "max search depth too small" in report:
                sys.exit(f"Spin has not finished:\n{report}")
            wrong.append(trace)
        return wrong


def claim_of(name, trace):
    page = KILLER if trace[-1][0] == "quarantined" else 1 - KILLER
    states = [
        f"(status[{page}] == {status} && fence[{page}] == {fence} && lapses[{page}] == {lapses})"
        for status, fence, lapses in trace
    ]
    yield f"never {name} {{"
    for number, (now, then) in enumerate(itertools.pairwise(states)):
        yield f"T{number}: if :: {now} -> goto T{number} :: {then} -> goto T{number + 1} fi;"
    yield f"T{len(states) - 1}: skip }}"


# What must not happen, and does if a guard of page.pml is missing.
WRONG = {
    "claimed while it is owned": [["queued", 0, 0], ["started", 1, 0], ["started", 2, 0], ["sealed", 2, 0]],
    "claimed with the fence of before": [["queued", 0, 0], ["started", 1, 0], ["queued", 1, 0], ["started", 1, 0]],
    "sealed twice": [["queued", 0, 0], ["started", 1, 0], ["sealed", 1, 0], ["started", 2, 0]],
    "sealed without an owner": [["queued", 0, 0], ["started", 1, 0], ["queued", 1, 1], ["sealed", 1, 1]],
    "quarantined too early": [["queued", 0, 0], ["started", 1, 0], ["quarantined", 1, 0]],
    "a lapse that is not counted": [["queued", 0, 0], ["started", 1, 0], ["queued", 1, 2]],
}
RIGHT = [
    [["queued", 0, 0], ["started", 1, 0], ["sealed", 1, 0]],
    [
        ["queued", 0, 0],
        ["started", 1, 0],
        ["queued", 1, 0],
        ["started", 2, 0],
        ["queued", 2, 1],
        ["started", 3, 1],
        ["sealed", 3, 1],
    ],
    [
        ["queued", 0, 0],
        ["started", 1, 0],
        ["queued", 1, 1],
        ["started", 2, 1],
        ["queued", 2, 2],
        ["started", 3, 2],
        ["quarantined", 3, 2],
    ],
]


def main():
    right, wrong = refused(RIGHT, 3), refused(WRONG.values(), 3)
    accepted = [what for what, trace in WRONG.items() if trace not in wrong]
    print(f"refused: {right}, accepted: {accepted}")
    return 1 if right or accepted else 0


if __name__ == "__main__":
    sys.exit(main())
