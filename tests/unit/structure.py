#!/usr/bin/env python3
"""Compares lib/README.md with the code: modules, threads and locks. Usage: structure.py SOURCE_DIRECTORY"""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1))
README = (SOURCE / "lib/README.md").read_text()

MODULES = {
    path.parent.name: path.parent for top in ("lib", "services") for path in SOURCE.glob(f"{top}/*/CMakeLists.txt")
}
# The only modules that include a library.
ONLY = {
    "pqxx/": {"pg"},
    "boost/process": {"process"},
    "curl/": {"http"},
    "sqlite3.h": {"sqlite", "wacz"},
}


def sources(directory):
    return sorted(path for path in directory.rglob("*") if path.suffix in (".cpp", ".hpp"))


def lines(path):
    return path.read_text().splitlines()


def below_source(path):
    return str(path.relative_to(SOURCE))


def linked():
    """Module -> modules that its target links."""
    edges = {}
    for name, directory in MODULES.items():
        text = re.sub(r"#.*", "", (directory / "CMakeLists.txt").read_text())
        target = re.search(r"holdfast_module\(%s\b(.*?)\n\S|holdfast_module\(%s\b(.*)" % (name, name), text, re.S)
        edges[name] = set(re.findall(r"\bholdfast_(\w+)", next(filter(None, target.groups())))) & set(MODULES)
    return edges


def drawn():
    """The same, as the graph of lib/README.md has it. `base` may be used by each of them."""
    graph = re.search(r"```mermaid\n(.*?)```", README, re.S)[1]
    edges = {name: {"base"} for name in MODULES if name != "base"}
    edges["base"] = set()
    for line in graph.splitlines():
        if "-->" in line:
            left, right = (re.findall(r"\w+", re.sub(r"\[.*?\]", "", side)) for side in line.split("-->"))
            for user in left:
                edges[user] |= set(right)
    return edges


def table(heading, column):
    """The file names in a column of the table below a heading of lib/README.md."""
    section = re.search(r"^## %s\n(.*?)(?=^## |\Z)" % heading, README, re.S | re.M)[1]
    rows = [line.strip().strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [name for row in rows for name in re.findall(r"`([\w/]+\.[ch]pp)`", row[column])]


def files_with(pattern):
    found = re.compile(pattern)
    files = [path for top in ("lib", "services") for path in sources(SOURCE / top)]
    return {below_source(path) for path in files if any(found.search(line.split("//")[0]) for line in lines(path))}


def compiled_together():
    """Name -> sources of each module and test program."""
    for top in ("lib", "services", "tests"):
        for path in SOURCE.glob(f"{top}/**/CMakeLists.txt"):
            text = re.sub(r"#.*", "", path.read_text())
            for name, body in re.findall(r"holdfast_(?:module|test)\((\w+)(.*?)\bLINKS", text, re.S):
                files = [path.parent / file for file in re.findall(r"[\w/.]+\.cpp", body)]
                yield name, [file for file in files if file.exists()]


def anonymous_names(path):
    """What the file declares at the top of its anonymous namespace: types, constants, functions with parameters."""
    inside = False
    for line in lines(path):
        if re.match(r"namespace \{", line):
            inside = True
        elif re.match(r"\} *// namespace$", line):
            inside = False
        elif inside and re.match(r"[A-Za-z]", line) and not re.match(r"namespace|using|template", line):
            plain = re.sub(r"<[^()]*?>", "", line)
            kind = re.match(r"(?:struct|class|enum class|union) (\w+)", line)
            function = re.match(r"[\w:&* ]*?(?<!:)\b(\w+)(\(.*)", plain)
            value = re.match(r"[\w:&*, ]*?(\w+)(\[.*?\])?(\{| =|;)", plain)
            if kind:
                yield kind[1]
            elif value:
                yield value[1]
            elif function:
                yield function[1] + re.sub(r" \w+(?=[,)]| =)", "", function[2].split("{")[0].rstrip(" ;"))


def braced_arguments(text):
    """Lines where an argument of an awaited call is written as {...}; not those in the body of a lambda."""
    for awaited in re.finditer(r"\bco_await\b", text):
        open_ones = []
        for at in range(awaited.end(), len(text)):
            letter = text[at]
            if letter in "([{":
                if letter == "{" and "{" not in open_ones and re.search(r"[(,]\s*$", text[:at][-200:]):
                    yield text.count("\n", 0, at) + 1
                open_ones.append(letter)
            elif letter in ")]}":
                if not open_ones:
                    break
                open_ones.pop()
            elif letter == ";" and not open_ones:
                break


def words_of_relations():
    """Table, view, function or type of the database -> the names in its definition, and in those that it uses."""
    text = {}
    for path in sorted(SOURCE.glob("migrations/**/*.sql")):
        for part in re.split(r"\n(?=create )", re.sub(r"--.*", "", path.read_text())):
            if found := re.match(r"create (?:or replace )?(?:table|view|function|type) holdfast\.(\w+)", part):
                text[found[1]] = text.get(found[1], "") + part
    used = {name: {name, *re.findall(r"holdfast\.(\w+)", body)} & set(text) for name, body in text.items()}
    return {name: set(re.findall(r"\w+", " ".join(text[one] for one in used[name]))) for name in text}


class Modules(unittest.TestCase):
    maxDiff = None

    def test_an_include_is_an_edge_of_the_graph(self):
        wrong = []
        edges = linked()
        for name, directory in MODULES.items():
            for path in sources(directory):
                for number, line in enumerate(lines(path), 1):
                    used = re.match(r'#include "(?:lib|services)/(\w+)/', line)
                    if used and used[1] != name and used[1] not in edges[name]:
                        wrong.append(f"{below_source(path)}:{number}: {name} does not link {used[1]}")
        self.assertEqual(wrong, [])

    def test_the_directories_of_the_worker_form_layers(self):
        text = re.search(r"directories of `services/worker`(.*?)\n\n", README, re.S)[1]
        layers = ["", *re.findall(r"`(\w+)`", text)]
        worker = SOURCE / "services/worker"
        self.assertEqual(set(layers[1:]), {path.name for path in worker.iterdir() if path.is_dir()})
        wrong = []
        for layer in layers:
            for path in sorted((worker / layer).glob("*.[ch]pp")) if layer else [worker / "options.hpp"]:
                for number, line in enumerate(lines(path), 1):
                    used = re.match(r'#include "services/worker/(?:(\w+)/)?(\w+)\.hpp"', line)
                    if used and (layers.index(used[1] or "") > layers.index(layer) or used[2] == "worker"):
                        wrong.append(f"{below_source(path)}:{number}: {line}")
        self.assertEqual(wrong, [])

    def test_the_graph_is_that_of_the_targets(self):
        self.assertEqual(drawn(), linked())

    def test_the_graph_has_no_cycle(self):
        left = linked()
        while left:
            free = {name for name, used in left.items() if not used & set(left)}
            self.assertTrue(free, f"a cycle among {sorted(left)}")
            left = {name: used for name, used in left.items() if name not in free}

    def test_a_library_is_included_only_where_it_belongs(self):
        wrong = []
        for name, directory in MODULES.items():
            for path in sources(directory):
                for number, line in enumerate(lines(path), 1):
                    for library, users in ONLY.items():
                        if line.startswith(f"#include <{library}") and name not in users:
                            wrong.append(f"{below_source(path)}:{number}: {line.strip()}")
        self.assertEqual(wrong, [])

    def test_sql_stands_only_in_store_and_catalog(self):
        """And where the database is made and migrated, or is no server's. A command line that is shown is not ours."""
        statement = re.compile(
            r'(?<!\\)"\s*(select|insert into|update|delete from|alter table|create table) [^"]*("|$)'
        )
        wrong, may = [], ("store", "catalog", "pg", "server", "archivebox", "profiles", "sqlite", "wacz")
        for name, directory in MODULES.items():
            for path in sources(directory) if name not in may else []:
                for number, line in enumerate(lines(path), 1):
                    if statement.search(line):
                        wrong.append(f"{below_source(path)}:{number}: {line.strip()}")
        self.assertEqual(wrong, [])

    def test_a_setting_that_code_reads_has_a_row_of_that_type_and_each_row_is_read(self):
        table = SOURCE / "lib/config/key_table.cpp"
        types = dict(re.findall(r'\{"([\w.]+)", Type::(\w+),', table.read_text()))
        self.assertGreater(len(types), 70)
        read = re.compile(r'[sS]ettings_?(?:\(\))?\.(\w+)\("([^"]*)"\)')
        wrong, named = [], set()
        for path in (path for top in ("lib", "services") for path in sources(SOURCE / top) if path != table):
            text = path.read_text()
            named |= set(re.findall(r'"([\w.]+)"', text))
            for getter, key in read.findall(text):
                if key not in types or getter not in ("text", "value", types[key]):
                    wrong.append(f'{below_source(path)}: {getter}("{key}"), which is {types.get(key, "no setting")}')
        self.assertEqual(wrong, [])
        self.assertEqual(set(types) - named, set(), "settings that nothing reads")

    def test_a_file_can_be_read_at_once(self):
        sizes = {below_source(path): len(lines(path)) for top in ("lib", "services") for path in sources(SOURCE / top)}
        self.assertEqual({path: size for path, size in sizes.items() if size > 400}, {})

    def test_a_name_in_an_anonymous_namespace_is_unique_in_its_module(self):
        # Sources are compiled in units of several, and which ones meet in a unit changes with every new source.
        for name, files in compiled_together():
            owner = {}
            for path in files:
                for declared in set(anonymous_names(path)):
                    self.assertIs(owner.setdefault(declared, path), path, f"{name}: {declared}")

    def test_an_awaited_call_has_no_braced_argument(self):
        """g++ 12 destroys such a temporary twice, or at the wrong address."""
        wrong = [
            f"{below_source(path)}:{number}"
            for top in ("lib", "services", "tests")
            for path in sources(SOURCE / top)
            for number in braced_arguments(re.sub(r"//.*", "", path.read_text()))
        ]
        self.assertEqual(wrong, [])


class Names(unittest.TestCase):
    maxDiff = None

    def test_a_column_is_one_of_what_its_file_asks_for(self):
        """A file asks for functions and views by name and for lists, itself or by a header of `store`."""
        words = words_of_relations()
        row = r'\{"(\w+)", "\w+", "\w+", "[^"]*",\s*"\w*",\s*"(\w+)"'
        lists = dict(re.findall(row, (SOURCE / "lib/catalog/list.cpp").read_text()))
        literal = re.compile(
            r'\b(?:row|now|rows\[0\]|one\(\))\["(\w+)"\]|(?<!call)\.(?:text|integer|column)\("(\w+)"\)'
        )

        def known(text):
            names = re.findall(r'holdfast\.(\w+)|\b(?:call\w*(?:<[^>]*>)?|repeat|once)\([^";]*"(\w+)"', text)
            names = [one or other for one, other in names] + [lists.get(name) for name in re.findall(r'"(\w+)"', text)]
            return set(re.findall(r"\bas (\w+)", text)).union(*(words.get(name, ()) for name in names))

        wrong, seen = [], 0
        users = ("catalog", "cli", "maintenance", "member", "runner", "serve", "store", "webhook", "worker")
        for path in [path for name in users for path in sources(MODULES[name])]:
            text = path.read_text()
            used = [SOURCE / f"{name}.cpp" for name in re.findall(r'#include "(lib/store/\w+)\.hpp"', text)]
            columns = known(text).union(*(known(one.read_text()) for one in used if one.exists()))
            found = {one or other for one, other in literal.findall(text)}
            seen += len(found)
            wrong += [f"{below_source(path)}: {name}" for name in sorted(found - columns)]
        self.assertEqual(wrong, [])
        self.assertGreater(seen, 200)


class Tables(unittest.TestCase):
    maxDiff = None

    def test_the_list_of_threads_is_complete(self):
        members = files_with(r"\b(std::j?thread|thread_pool) *(>+ )?\w+(\{.*\})?(, *\w+)?;")
        self.assertTrue(members)
        self.assertEqual(set(table("Threads", 1)), members)

    def test_the_list_of_locks_is_complete(self):
        locks = files_with(r"\bstd::(shared_|recursive_|timed_)?mutex +\w+;")
        self.assertTrue(locks)
        self.assertEqual(set(table("Locks", 0)), locks)


if __name__ == "__main__":
    unittest.main()
