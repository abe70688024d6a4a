"""What can be checked about the text of the repository: its lines, its words, its links, the paths and verbs it names."""

import ast
import io
import re
import shlex
import shutil
import subprocess
import sys
import tokenize
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/mutants"))
import checklist
import table

REPORT = sys.argv.pop(sys.argv.index("--junit") + 1) if "--junit" in sys.argv else ""
if REPORT:
    sys.argv.remove("--junit")
HOLDFAST = sys.argv.pop(1) if len(sys.argv) > 1 and "/" in sys.argv[1] else ""

# The demonstration site is content to archive.
CONTENT = ("deploy/demo-site/", "tests/site/", "tests/fixtures/")
WIDTH = {".sql": 110, ".py": 120, ".cpp": 120, ".hpp": 120, ".c": 120, ".h": 120, ".sh": 120, ".spec": 120, ".md": 100}

# Words that made readers stop: a paraphrase where the field has a term, or a subject that hides who acts.
BANNED = r"nobody|somebody|whoever|whatsoever|dear|dearer|forgotten|what it is asked|at that very moment|anew"
# A comment that begins so paraphrases its subject, or needs a sentence before it.
CLAUSE = "What|Of|Whether|The same|As|Nothing|Those|These|This|That|It|Its|They|Who|Whose"
# The account, and names inside tests' data, are not prose.
NOT_PROSE = r"\"nobody\"|'nobody'|-u nobody|kNobody|as nobody|nobody\.invalid|http://nobody|user nobody|nobody:|nobody\.pw|nobody ="


def tracked():
    """The tracked files, below the work tree, or every file where there is no git (a release's archive)."""
    listed = ""
    if shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout
    names = [name for name in listed.split("\0") if name]
    if not names:
        made = {".git", "build", "holdfast-data", "secrets"}  # by git, by a build, by the commands of README.md
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names if name.split("/")[0] not in made]
    return [name for name in sorted(names) if (ROOT / name).is_file() and not name.startswith(CONTENT)]


def text_of(name):
    return (ROOT / name).read_text(errors="replace")


def prose_lines(text):
    """(number, line) of a Markdown file without its code blocks and tables, which cannot be wrapped."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith("|"):
            yield number, line


def python_lines(text):
    """(number, line) of a Python file without the lines of strings that span several: SQL, HTML, programs."""
    inside, began = set(), []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":  # since Python 3.12 an f-string is more than one token
            began.append(token.start[0])
        first = began.pop() if kind == "FSTRING_END" else token.start[0]
        if kind in ("STRING", "FSTRING_END") and first != token.end[0]:
            inside.update(range(first, token.end[0] + 1))
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if number not in inside)


def descriptions(name, text):
    """(number, beginning) of each comment that describes a file, a declaration, a function or a column."""
    # In functions, which are indented but in headers, a comment may refer to the lines around it.
    mark = "--" if name.endswith(".sql") else " *//" if name.endswith(".hpp") else "//"
    for found in re.finditer(rf"^(?P<line>{mark} (.*))|^comment on [^']* is\s+'([^']*)", text, re.M):
        before = text[: found.start()].rstrip("\n").rpartition("\n")[2]
        if not found["line"] or not re.match(mark, before):
            yield text.count("\n", 0, found.start()) + 1, found[2] or found[3] or ""


def anchors(text):
    """The anchors of a Markdown file's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*?) *$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Documents(unittest.TestCase):
    maxDiff = None

    def none_of(self, found, why):
        self.assertEqual([], found, f"{why} ({len(found)})")

    def test_lines_are_wrapped(self):
        long = []
        for name in tracked():
            width = WIDTH.get(Path(name).suffix)
            if not width:
                continue
            text = text_of(name)
            split = {".md": prose_lines, ".py": python_lines}.get(Path(name).suffix)
            lines = split(text) if split else enumerate(text.splitlines(), 1)
            # URLs are not broken, and neither are strings: their text is searched for.
            strings = r"""\"[^\"]*\"|'[^']*'|`[^`]*`|\S+://\S+"""
            long += [f"{name}:{n}: {len(line)}" for n, line in lines if len(re.sub(strings, "", line)) > width]
        self.none_of(long, "lines over the width of their kind")

    def test_comments_are_wrapped(self):
        """Comments of scripts and of files that configure something, and the texts that describe Python modules."""
        long = []
        for name in tracked():
            path = Path(name)
            text = text_of(name)
            if path.suffix == ".py" or (not path.suffix and text.startswith("#!/usr/bin/env python3")):
                lines = enumerate((ast.get_docstring(ast.parse(text)) or "").splitlines(), 1)
            elif path.suffix in ("", ".yml", ".yaml", ".conf", ".service") or path.name == "CMakeLists.txt":
                lines = ((n, line) for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("# "))
            else:
                continue
            long += [f"{name}:{n}: {len(line)}" for n, line in lines if len(line) > 120 and "://" not in line]
        self.none_of(long, "comments over 120 columns")

    def test_no_banned_word(self):
        found = []
        for name in tracked():
            if name == "tests/documents/run.py" or Path(name).suffix not in {*WIDTH, ".yml", ".html", ".txt", ""}:
                continue
            for number, line in enumerate(text_of(name).splitlines(), 1):
                if re.search(rf"\b({BANNED})\b", re.sub(NOT_PROSE, "", line), re.I):
                    found.append(f"{name}:{number}: {line.strip()[:100]}")
        self.none_of(found, "words that the style rules out")

    def test_a_description_stands_by_itself(self):
        """A comment above a declaration begins with a verb or a name, not with a clause or a pronoun."""
        found = []
        for name in tracked():
            if name.startswith(("lib/", "services/", "migrations/")) and name.endswith((".hpp", ".cpp", ".sql")):
                for number, begin in descriptions(name, text_of(name)):
                    if re.match(rf"({CLAUSE})\b", begin):
                        found.append(f"{name}:{number}: {begin[:80]}")
        self.none_of(found, "comments that begin with a clause or a pronoun")

    def test_links_lead_somewhere(self):
        broken = []
        for name in tracked():
            if not name.endswith(".md"):
                continue
            for target in re.findall(r"\]\(([^)\s]+)\)", text_of(name)):
                if "://" in target or target.startswith("mailto:"):
                    continue
                path, _, anchor = target.partition("#")
                file = (ROOT / name).parent / path if path else ROOT / name
                if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
                    broken.append(f"{name}: {target}")
        self.none_of(broken, "links that lead nowhere")

    def test_paths_exist(self):
        """A path in backquotes that begins with one of our directories is a file or directory of the tree."""
        missing = []
        for name in tracked():
            if not name.endswith(".md"):
                continue
            for path in re.findall(r"`((?:lib|services|migrations|deploy|tests)/(?!bin)[\w./-]+)`", text_of(name)):
                if "NAME" not in path and not (ROOT / path).exists():
                    missing.append(f"{name}: {path}")
        self.none_of(missing, "paths that do not exist")

    def evidence(self):
        """Of each row of the checklist: its number, the test that it names, and the test of ctest that runs that."""
        rows, cases = checklist.rows(), checklist.cases()
        self.assertEqual([row for row, _ in rows], checklist.NAMES)
        return [(row, test, checklist.ctest_of(test, cases)) for row, test in rows]

    def test_evidence_exists(self):
        """The tests that the checklist of the owner's documents names exist."""
        self.none_of([f"{row}: {test}" for row, test, ran in self.evidence() if not ran], "tests that do not exist")

    @unittest.skipUnless(REPORT, "without the report of a run (--junit FILE)")
    def test_evidence_ran(self):
        """And they were run, or have skipped themselves, which the run lists by name: the report of ctest has them."""
        ran = {case.get("name") for case in ElementTree.parse(REPORT).iter("testcase")}
        missing = [f"{row}: {test}" for row, test, suite in self.evidence() if suite not in ran]
        self.none_of(missing, "tests of the checklist that were not run")

    def test_mutants_have_their_place(self):
        """Each row of the checklist has a mutant, and the text that each takes away is there once."""
        self.none_of(
            [wrong for mutant in table.MUTANTS if (wrong := mutant.wrong())], "mutants to mend in tests/mutants"
        )
        shown = {row for mutant in table.MUTANTS for row in mutant.rows}
        self.none_of([row for row in checklist.NAMES if row not in shown], "rows without a mutant in tests/mutants")

    def test_variables_of_deployments_are_settings(self):
        """What compose, Kubernetes and the image set is a setting of the program, or of compose itself (${NAME:-...})."""
        keys = re.findall(r"^ *{\"([a-z_.]+)\", Type::", text_of("lib/config/key_table.cpp"), re.M)
        known = {"HOLDFAST_" + key.upper().replace(".", "_") for key in keys}
        files = [name for name in tracked() if name.endswith((".yml", ".yaml", ".service", "Dockerfile"))]
        wrong = []
        for name in files:
            text = text_of(name)
            set_here = re.findall(
                r"^\s*(?:ENV )?(HOLDFAST_[A-Z_]+)[:=]|name: (HOLDFAST_[A-Z_]+)|=(HOLDFAST_[A-Z_]+)=", text, re.M
            )
            wrong += [f"{name}: {''.join(found)}" for found in set_here if "".join(found) not in known]
        self.assertGreater(len(files), 8)
        self.none_of(wrong, "variables that are no settings")

    def test_the_network_policy_excludes_what_the_program_excludes(self):
        lines = (ROOT / "lib/base/text/not_public.txt").read_text().splitlines()
        networks = {line.split()[0] for line in lines}
        policy = (ROOT / "deploy/kubernetes/network.yaml").read_text()
        excluded = set(re.findall(r"[\da-f.:]+/\d+", " ".join(re.findall(r"except: \[(.*?)\]", policy, re.S))))
        # 6to4 has IPv4 addresses inside, which a policy cannot look at.
        self.assertEqual(excluded, networks | {"2002::/16"})

    @unittest.skipUnless(HOLDFAST, "without the program")
    def test_a_release_has_one_version_and_its_notes(self):
        version = re.search(r"project\(holdfast VERSION ([\d.]+)", text_of("CMakeLists.txt"))[1]
        named = re.findall(
            r"(?m)^(?:version|appVersion): ([\d.]+)$|holdfast:(\d[\d.]*)\b|newTag: \"([\d.]+)|\?ref=v([\d.]+)",
            "\n".join(text_of(name) for name in ("deploy/Chart.yaml", "deploy/values.yaml", "deploy/README.md")),
        )
        self.assertEqual({next(filter(None, one)) for one in named}, {version})

        def notes(text, of):
            command = [ROOT / "deploy/release-notes", of]
            return subprocess.run(command, input=text, capture_output=True, text=True)

        self.assertIn("- ", notes(text_of("CHANGELOG.md"), version).stdout)
        text = "# Changelog\n\n## [Unreleased]\n\nNew\n\n## [1.0.0] - 2027-01-01\n\n- Old\n\n## [0.1.0]\n\n- Older\n"
        self.assertEqual(notes(text, "1.0.0").stdout, "# Holdfast 1.0.0\n\n- Old\n\n")
        self.assertIn("New", notes(text, "1.1.0").stdout)
        self.assertEqual(notes("# Changelog\n", "1.0.0").returncode, 1)

    def test_commands_exist(self):
        """The parser of the program takes each `holdfast VERB ...` in backquotes and in a block of commands. Settings
        that do not exist end it then, before it does anything."""
        if not HOLDFAST:
            self.skipTest("there is no program")
        wrong, tried = [], 0
        for name in tracked():
            if not name.endswith(".md"):
                continue
            text = text_of(name).replace("\\\n", "")
            lines = re.findall(r"`(holdfast [a-z-][^`\n]*)`", text)
            lines += re.findall(
                r"^(?:\$ +)?(holdfast [^\n]+)$", "\n".join(re.findall(r"```\w*\n(.*?)```", text, re.S)), re.M
            )
            for line in lines:
                words = shlex.split(re.sub(r"[][]|\.\.\.", "", re.split(r"\s(?:[#|;\s]|&&|\d?>)", line)[0]))
                done = subprocess.run(
                    [HOLDFAST, "--config", "/no/such.yaml", *words[1:]], capture_output=True, text=True, timeout=60
                )
                tried += 1
                # A text may name a command alone, and files that are not here.
                if done.returncode and not re.search(
                    "/no/such.yaml|missing |no command given|there is no (file|directory)", done.stderr
                ):
                    wrong.append(f"{name}: {line}: {done.stderr.splitlines()[:1]}")
        self.assertGreater(tried, 150)
        self.none_of(wrong, "commands that the program does not take")


if __name__ == "__main__":
    unittest.main()
