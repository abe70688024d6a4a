"""A file of someone else is read, and does nothing: no file is deleted or followed to, no program starts, and reading
takes steps in proportion to its size. Each is tried by both commands that read databases of SQLite."""

import os
import shutil
import sqlite3
import stat
import struct
import unittest

from archivebox_directory import Directory
from harness.case import OK, REFUSED, Case

MAGIC = bytes.fromhex("d9d505f920a163d7")
COOKIES = (
    "create table cookies (host_key, name, value, encrypted_value, path, expires_utc, is_secure, is_httponly, samesite, "
    "has_expires)"
)
COOKIE = "insert into cookies values ('.a.test', ?, 'v', ?, '/', 0, 0, 0, -1, 0)"


def journal(names=b"", pages=(), size=0):
    """A rollback journal: what each page was, and the journal of several databases that it `names`."""
    text = MAGIC + struct.pack(">IIIII", len(pages), 0, size, 512, 4096)
    text += bytes(512 - len(text))
    for number, page in pages:
        checksum = sum(page[at] for at in range(4096 - 200, 0, -200)) & 0xFFFFFFFF
        text += struct.pack(">I", number) + page + struct.pack(">I", checksum)
    if names:
        lock_page = (1 << 30) // 4096 + 1
        text += struct.pack(">I", lock_page) + names
        text += struct.pack(">II", len(names), sum(names)) + MAGIC
    return text


def multiply(path, table):
    """Makes a small table have 300^4 rows: pages of the tree point to the same page below, 300 times."""
    with sqlite3.connect(path) as database:
        root = database.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()[0]
        page = database.execute("pragma page_size").fetchone()[0]
    text = bytearray(path.read_bytes())
    leaf = text[(root - 1) * page : root * page]
    pages = [bytes(leaf)]

    def inner(child):
        cells = b"".join(struct.pack(">IB", child, 1) for _ in range(300))
        start = page - len(cells)
        head = struct.pack(">BHHHBI", 5, 0, 300, start, 0, child)
        pointers = b"".join(struct.pack(">H", start + 5 * at) for at in range(300))
        return (head + pointers).ljust(start, b"\0") + cells

    first = len(text) // page + 1
    for level in range(3):
        pages.append(inner(first + level))
    text += b"".join(pages)
    text[(root - 1) * page : root * page] = inner(first + 3)
    text[28:32] = struct.pack(">I", len(text) // page)
    path.write_bytes(text)


class UntrustedFiles(Case):
    def setUp(self):
        self.home = self.place(held=True)
        self.victim = self.home.path / "victim"
        self.victim.write_text("precious\n" * 10)

    def browser(self, name):
        directory = self.home.path / name
        directory.mkdir()
        with sqlite3.connect(directory / "Cookies") as database:
            database.execute(COOKIES)
            database.execute(COOKIE, ("n", b""))
        return directory, directory / "Cookies", ("persona", "import", "p", directory)

    def index(self, name):
        box = Directory(self.home.path / name, "0.9", 3)
        box.index.close()
        return box.data, box.data / "index.sqlite3", ("import", "archivebox", box.data)

    def each(self, name):
        for kind in (self.browser, self.index):
            with self.subTest(kind=kind.__name__, case=name):
                yield kind(f"{name}-{kind.__name__}")

    def refused(self, command, *words):
        self.check_error(self.home.run(*command), REFUSED, *words)

    def taken(self, command):
        result = self.home.run(*command)
        self.assertEqual(result.code, OK, str(result))
        return result.records[-1]

    def test_a_journal_that_names_another_file(self):
        for _, file, command in self.each("named"):
            with open(f"{file}-journal", "wb") as made:
                made.write(journal(str(self.victim).encode()))
            before = {path: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}
            self.refused(command, "-journal names another file")
            self.assertTrue(self.victim.exists())
            self.assertEqual(before, {path: path.read_bytes() for path in file.parent.iterdir() if path.is_file()})

    def test_a_change_that_broke_off_is_undone_in_the_copy(self):
        for _, file, command in self.each("undone"):
            text = file.read_bytes()
            with open(f"{file}-journal", "wb") as made:
                made.write(journal(pages=[(1, text[:4096])], size=len(text) // 4096))
            file.write_bytes(b"\xff" * 4096 + text[4096:])
            self.taken(command)
            self.assertEqual(file.read_bytes()[:4], b"\xff" * 4)
            self.assertTrue(os.path.exists(f"{file}-journal"))

    def test_what_is_only_in_the_log_of_changes_is_read(self):
        directory, file, command = self.browser("wal")
        database = sqlite3.connect(file)
        self.addCleanup(database.close)
        database.execute("pragma journal_mode = wal")
        database.execute(COOKIE, ("second", b""))
        database.commit()
        self.assertEqual(self.taken(command)["cookies"], 2)

    def test_links_are_not_followed(self):
        for part in ("", "-wal", "-journal"):
            for _, file, command in self.each(f"link{part}"):
                other = self.home.path / f"other{len(list(self.home.path.iterdir()))}"
                shutil.copy(file, other)
                if not part:
                    file.unlink()
                os.symlink(other, f"{file}{part}")
                done = self.home.run(*command)
                self.assertEqual(done.code, REFUSED, str(done))
        # A directory on the way, and a file that is no database.
        outer = self.home.path / "outer"
        outer.mkdir()
        (outer / "Default").symlink_to(self.browser("inner")[0])
        (outer / "cookies.txt").symlink_to(self.victim)
        self.refused(("persona", "import", "p", outer), "is not a browser profile")
        # The user may name a link.
        named = self.home.path / "named"
        named.symlink_to(self.home.path / "inner")
        self.assertEqual(self.taken(("persona", "import", "p", named))["cookies"], 1)

    def test_tables_that_are_programs(self):
        for name, statement in (
            ("computed", COOKIES.replace("value,", "value as (hex(zeroblob(500000))),", 1)),
            ("virtual", "create virtual table cookies using fts5(host_key, name, value)"),
            ("view", "create view cookies as select 1 as host_key"),
        ):
            with self.subTest(name):
                directory = self.home.path / name
                directory.mkdir()
                with sqlite3.connect(directory / "Cookies") as database:
                    database.execute(statement)
                self.refused(("persona", "import", "p", directory), "no table cookies")

    def test_steps_are_bounded_by_the_size(self):
        _, file, command = self.browser("many")
        with sqlite3.connect(file) as database:
            database.execute("update cookies set encrypted_value = 'v11' || zeroblob(16)")
        multiply(file, "cookies")
        self.refused(command, "it takes more steps than a file of its size needs")
        # Two tables of some thousand rows without an index of the one by the other.
        data, file, command = self.index("square")
        with sqlite3.connect(file) as database:
            for (name,) in database.execute(
                "select name from sqlite_master where type = 'index' and tbl_name = 'core_archiveresult' and sql <> ''"
            ).fetchall():
                database.execute(f'drop index "{name}"')
            columns = [row[1] for row in database.execute("pragma table_info(core_archiveresult)") if not row[5]]
            some = ", ".join(f'"{name}"' for name in columns)
            database.execute(
                "create temp table numbers as with recursive r(n) as "
                "(select 1 union all select n + 1 from r where n < 8000) select n from r"
            )
            database.execute(f"create table results as select {some} from core_archiveresult limit 1")
            database.execute("drop table core_archiveresult")
            database.execute("create table core_archiveresult as select results.* from results, numbers")
            database.execute("create table snapshots as select * from core_snapshot limit 1")
            database.execute("drop table core_snapshot")
            database.execute("create table core_snapshot as select snapshots.* from snapshots, numbers")
            database.execute("update core_snapshot set id = printf('%032x', rowid)")
        done = self.home.run(*command, "--dry-run")
        self.assertIn("takes more steps than a file of its size needs", done.err + done.out)

    def test_no_other_program_unpacks(self):
        started = self.home.path / "started"
        programs = self.home.path / "programs"
        programs.mkdir()
        for name in ("lrzip", "grzip", "gzip", "bzip2", "xz", "zstd", "lz4", "lzop", "uncompress"):
            program = programs / name
            program.write_text(f"#!/bin/sh\ntouch {started}\ncat\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        path = {"PATH": f"{programs}:{os.environ['PATH']}"}
        for name, magic in (
            ("lrzip", b"LRZI\0\6"),
            ("grzip", b"GRZipII\0\2\4:)"),
            ("lzop", b"\x89LZO\0\r\n\x1a\n" + bytes(20)),
            ("lz4", b"\x04\x22\x4d\x18" + bytes(20)),
            ("compress", b"\x1f\x9d\x90" + bytes(20)),
            ("rpm", b"\xed\xab\xee\xdb" + bytes(100)),
            ("uu", b"begin 644 x\n\0" + bytes(100)),
        ):
            with self.subTest(name):
                file = self.home.path / f"packed.{name}"
                file.write_bytes(magic + bytes(1000))
                for command in (("persona", "import", "p", file), ("import", file)):
                    done = self.home.run(*command, env=path)
                    self.assertNotEqual(done.code, OK, str(done))
                    self.assertFalse(started.exists(), str(done))


if __name__ == "__main__":
    unittest.main()
