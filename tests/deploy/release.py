#!/usr/bin/env python3
"""Checks migrations/ against the latest release, a tag v<version>.

Numbered files of a release never change. If files in functions/ changed since, there is a new numbered file too (a
comment is enough): the highest number alone says which of two releases has the newer functions.

    tests/deploy/release.py [DIRECTORY]

Exit 0: correct, or nothing was released yet; 1: not correct; 77: no git repository.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parents[2]


def git(*words):
    return subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def is_numbered(path):
    return re.fullmatch(r"migrations/\d{4}_\w+\.sql", path) is not None


def problem(latest):
    """What is wrong with migrations/ after this release, or None."""
    released = [
        path
        for path in git("ls-tree", "-r", "--name-only", latest, "--", "migrations").stdout.split()
        if path.endswith(".sql")
    ]
    changed = [
        path for path in git("diff", "--no-renames", "--name-only", latest, "--", "migrations/*.sql").stdout.split()
    ]
    edited = [path for path in changed if is_numbered(path) and path in released]
    added = [path for path in changed if is_numbered(path) and path not in released]
    functions = [path for path in changed if not is_numbered(path)]
    if edited:
        return f"{', '.join(edited)}: part of {latest}, must not change; add a numbered file"
    if added and min(added) < max(filter(is_numbered, released), default=""):
        return f"{min(added)}: below the highest number of {latest}"
    if functions and not added:
        return f"{', '.join(functions[:5])}: changed since {latest}; add a numbered file, which may hold only a comment"
    return None


def main():
    try:
        tags = git("tag", "--merged", "HEAD", "--list", "v[0-9]*")
    except FileNotFoundError:
        return 77
    if tags.returncode != 0:
        return 77
    latest = max(tags.stdout.split(), key=lambda tag: [int(part) for part in re.findall(r"\d+", tag)], default=None)
    wrong = latest and problem(latest)
    print(wrong or f"migrations agree with {latest or 'no release'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
