"""The rows of tests/seed_checklist.md, and the tests that they name."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = [*map(str, range(1, 149)), *"abcdefghijk", *"ABCDEFGHIJKL"]


def text_of(name):
    return (ROOT / name).read_text(errors="replace")


def rows():
    """(row, test) of each row: a case of C++ in quotes, `isolation:SPEC`, `SUITE:test`, or a test of ctest."""
    return re.findall(r"^\| (\w+) \|.*\| ([^|]+) \|$", text_of("tests/seed_checklist.md"), re.M)


def cases():
    """(suite, test of ctest) of each case of C++."""
    found = {}
    for file in sorted((ROOT / "tests").rglob("CMakeLists.txt")):
        text = file.read_text()
        for suite, kind, sources in re.findall(r"holdfast_test\((\w+)\b([^)]*?)SOURCES\s+([^)]*?)(?:LINKS|\))", text):
            for source in re.findall(r"[\w/]+_test\.cpp|\btest_\w+\.cpp", sources):
                body = re.sub(r'"\s*\n\s*"', "", (file.parent / source).read_text())
                for case in re.findall(r'TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"', body):
                    case = case.replace('\\"', '"')
                    part = f"{suite}_{source.removesuffix('_test.cpp')}" if "PARTS" in kind else suite
                    found.setdefault(case, (suite, part if "SERIAL" in kind else f"{suite}:{case}"))
    return found


def parts_of(test):
    """`SUITE[_PART][:[Class.]method]` as (suite, part, class, method), each "" if it is not there."""
    found = re.fullmatch(r"`?(\w+?)(?:_(\w+))?(?::(?:(\w+)\.)?(\w+))?`?", test)
    return tuple(word or "" for word in found.groups()) if found else None


def file_of(test):
    """The file of a test that is not a case of C++."""
    suite, part, _, method = parts_of(test)
    special = {"structure": "tests/unit/structure.py", "compose": "tests/deploy/compose.py"}
    if suite == "isolation":
        return f"tests/isolation/specs/{method}.spec"
    return special.get(suite) or (f"tests/{suite}/test_{part}.py" if part else f"tests/{suite}/run.py")


def ctest_of(test, cases):
    """The test of ctest that runs this one; None if there is no such test."""
    if test.startswith('"'):
        return cases.get(test[1:-1], (None, None))[1]
    if not parts_of(test):
        return None
    suite, part, group, method = parts_of(test)
    if not (ROOT / file_of(test)).is_file():
        return None
    text = text_of(file_of(test))
    if suite != "isolation" and method and f"def {method}(" not in text or group and f"class {group}(" not in text:
        return None
    parted = "holdfast_parts" in text_of(f"tests/{suite}/CMakeLists.txt") if group else False
    return f"{suite}_{group}" if parted else f"{suite}_{part}" if part else suite


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
