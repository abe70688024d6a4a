#!/usr/bin/env python3
"""Checks the models of this directory with Spin: each must hold, and must fail without any of its guards.

run.py                       all models, all guards
run.py MODEL GUARD           one guard removed, with the trace that Spin has found
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DEADLINE = 300  # seconds for one search; the longest takes two


def guards(model):
    return re.findall(r"guard\(([A-Z_]+)\)", (HERE / f"{model}.pml").read_text())


def check(model, without, trace=False):
    """Returns what Spin has found wrong, or None. Assertions and fairness are one search."""
    source = HERE / f"{model}.pml"
    define = [f"-DWITHOUT={without}"] if without else []

    with tempfile.TemporaryDirectory() as place:

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

        run("spin", *define, "-a", source)
        # To optimise pays only for a search of the whole: what a guard has kept away is found in less than a second.
        run("gcc", "-w", "-O0" if without else "-O1", "-DNFAIR=12", "-DCOLLAPSE", "-o", "pan", "pan.c")
        report = run("./pan", "-m2000000", "-a", "-f", "-E")
        if "Search not completed" not in report and re.search(r"errors: 0\b", report):
            print(f"  {re.search(r'[0-9.e+]+ states, stored', report).group()}")
            return None
        found = re.search(r"^pan:1: (.*?) \(at depth", report, re.MULTILINE)
        if not found:
            sys.exit(f"{model} without {without}: Spin has not finished:\n{report}")
        if trace:
            run("cp", source, ".")
            print(run("spin", *define, "-t", "-p", "-g", f"{model}.pml"))
        return found.group(1)


def main():
    if len(sys.argv) == 3:
        print(check(sys.argv[1], sys.argv[2], trace=True) or "holds")
        return 0
    failed = 0
    for model in sorted(path.stem for path in HERE.glob("*.pml")):
        print(f"{model}:")
        wrong = check(model, None)
        if wrong:
            failed += 1
            print(f"  does not hold: {wrong}")
        for guard in sorted(set(guards(model))):
            wrong = check(model, guard)
            failed += not wrong
            print(f"  without {guard}: {wrong or 'holds: the guard guards nothing'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
