#!/usr/bin/env python3
"""Two builds that say the same version must have the same functions, or each takes the other's back while a cluster is upgraded.
A release is a tag v<version>: once it is there, migrations/ may only change together with the version in CMakeLists.txt.

    tests/deploy/release.py [DIRECTORY]      0: so it is; 1: it is not; 77: no git repository, so nobody can tell
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parents[2]


def git(*words):
    return subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def main():
    try:
        tags = git("tag", "--merged", "HEAD", "--list", "v[0-9]*")
    except FileNotFoundError:
        return 77
    if tags.returncode != 0:
        return 77
    version = re.search(r"project\(holdfast VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    latest = max(tags.stdout.split(), key=numbers, default=None)
    print(f"version {version}, the latest release is {latest}")
    if not latest or numbers(version) > numbers(latest):
        return 0
    changed = git("diff", "--name-only", latest, "--", "migrations/*.sql").stdout.split()
    if numbers(version) == numbers(latest) and not changed:
        return 0
    print(f"{latest} is released, and since then {', '.join(changed[:5]) or 'the version was lowered'} changed: raise project(holdfast VERSION ...) in CMakeLists.txt")
    return 1


if __name__ == "__main__":
    sys.exit(main())
