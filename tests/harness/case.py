"""What tests of the program share: exit codes, a case with a collection, mounts, and a server that is not its own."""

import shutil
import subprocess
import unittest

from harness.collection import ROOT, Embedded, program
from harness.postgres import Server
from harness.wait import free_port

PROGRAM = program()

# Exit codes of lib/base/error.hpp.
OK, FAILED_WORK, USAGE, REFUSED, UNAVAILABLE = 0, 1, 64, 65, 69
CANNOT_CREATE, INPUT_OUTPUT, SCHEMA_MISMATCH, CONFIGURATION, INTERRUPTED = 73, 74, 76, 78, 130


class Case(unittest.TestCase):
    maxDiff = None
    profile = Embedded

    def collection(self, *arguments, **options):
        """One of the suite's profile, which is closed after the test."""
        collection = self.profile(*arguments, **options)
        self.addCleanup(collection.close, self)
        return collection

    def place(self, held=False, filled=True):
        """`filled`: with an empty collection; `held`: whose server is up."""
        place = self.collection()
        if filled:
            place.fill()
        return place.hold() if held else place

    def check_error(self, result, code, *words):
        """One clear message: the program's name first, the words in it, nothing on standard output."""
        self.assertEqual(result.code, code, str(result))
        said = "".join(line for line in result.err.splitlines(True) if not line.startswith('{"time"'))  # the log
        self.assertTrue(said.startswith("holdfast: "), str(result))
        self.assertEqual(said.count("holdfast: "), 1, str(result))
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(result.out, "", str(result))
        self.assertNotIn("terminate called", result.err)


def can_mount():
    return (
        ROOT
        and shutil.which("unshare")
        and subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True).returncode
        == 0
    )


def with_mounts(script):
    """A command's prefix that runs it with mounts of its own, which vanish with it."""
    return ["unshare", "-m", "sh", "-c", f'{script} && exec "$@"', "sh"]


class Database(Server):
    """A PostgreSQL server that is not holdfast's own: on a port, with passwords."""

    PASSWORD = "correct horse"

    def __init__(self, directory=None, **settings):
        super().__init__(directory, user="holdfast", port=free_port(), password=self.PASSWORD, **settings)
        self.__enter__()

    def url(self, name="postgres", password=PASSWORD, user="holdfast"):
        secret = f":{password.replace(' ', '%20')}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{name}"

    def close(self):
        self.__exit__()
