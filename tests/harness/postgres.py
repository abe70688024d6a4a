"""PostgreSQL servers of a test's own, and PgBouncer. None runs as root; none outlives the program that started it."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from .wait import Failure, free_port, until

MIGRATIONS = pathlib.Path(__file__).resolve().parents[2] / "migrations"


def find_programs():
    """The directory of the newest installed server's programs, or of those that HOLDFAST_TEST_POSTGRES names."""
    if named := os.environ.get("HOLDFAST_TEST_POSTGRES"):
        return pathlib.Path(named)
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    other = shutil.which("initdb")
    return found[-1].parent if found else pathlib.Path(other).resolve().parent if other else None


def account():
    """Keywords of subprocess with which PostgreSQL and PgBouncer run: they refuse to be root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {}


def give(path, identity):
    """Makes a path that of the account."""
    if identity:
        os.chown(path, identity["user"], identity["group"])


class Server:
    """A server on a socket in its directory, and with `port` on `listen` too. Leaving the context removes it."""

    def __init__(self, directory=None, user="postgres", port=None, listen="127.0.0.1", password=None, **settings):
        self.programs = find_programs()
        if not self.programs:
            raise Failure("the programs of a PostgreSQL server are not installed")
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="holdfast-postgres-"))
        self.directory.mkdir(exist_ok=True)
        self.identity, self.process = account(), None
        self.user, self.port, self.password = user, port, password
        self.settings = {
            "listen_addresses": listen if port else "",
            "port": port or 5432,
            "unix_socket_directories": self.directory,
            "fsync": "off",
            "timezone": "UTC",
            **settings,
        }
        own = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        self.environment = {
            **own,
            "LC_ALL": "C.UTF-8",
            "PGHOST": str(self.directory),
            "PGPORT": str(port or 5432),
            "PGUSER": user,
            **({"PGPASSWORD": password} if password else {}),
        }
        give(self.directory, self.identity)

    def __enter__(self):
        try:
            self.create()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def create(self):
        """The files of the server, with an empty database `postgres`."""
        access = ["-A", "trust"]
        if self.password:
            secret = self.directory / "password"
            secret.write_text(self.password + "\n")
            give(secret, self.identity)
            access = ["-A", "scram-sha-256", f"--pwfile={secret}"]
        self.run("initdb", "-D", "data", "-U", self.user, *access, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")

    def start(self):
        """Starts it, and waits until it takes connections."""
        settings = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.directory / "log", "ab") as log:
            # The kernel tells it to quit if we die, however that happens.
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "QUIT", self.programs / "postgres", "-D", "data", *settings],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self.identity,
            )
        until("the server is ready", self.ready, 60, lambda: "\n".join(self.log()[-20:]))

    def ready(self):
        if self.process.poll() is not None:
            raise Failure("the server has ended:\n" + "\n".join(self.log()[-20:]))
        with contextlib.suppress(OSError, IndexError):
            state = (self.directory / "data/postmaster.pid").read_text().splitlines()
            return int(state[0]) == self.process.pid and state[7].strip() == "ready"
        return False

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, how=signal.SIGQUIT):
        """SIGQUIT: at once; SIGINT: sessions are ended."""
        if self.process:
            self.process.send_signal(how)
            self.process.wait(600)

    def restart(self, how=signal.SIGINT, **settings):
        self.settings |= settings
        self.stop(how)
        self.start()

    def crash(self):
        """As a power cut that spares the disk: every session is lost, the log is replayed."""
        self.restart(signal.SIGQUIT)

    def run(self, program, *arguments, timeout=300, **options):
        """The output of a program, which must succeed."""
        own = self.programs / program
        options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
        done = subprocess.run(
            [own if own.exists() else program, *map(str, arguments)],
            cwd=self.directory,
            env=self.environment,
            text=True,
            timeout=timeout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **self.identity,
            **{name: value for name, value in options.items() if value is not None},
        )
        if done.returncode != 0:
            raise Failure(f"{program} failed ({done.returncode}):\n{done.stdout}")
        return done.stdout

    def psql(self, database, *arguments, **options):
        return self.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", database, *arguments, **options)

    def sql(self, text, database="postgres"):
        """What psql prints, without the line feed at its end."""
        return self.psql(database, "-A", "-t", "-f", "-", input=text).rstrip("\n")

    def rows(self, text, database="holdfast", tries=40):
        """Rows as lists of text. Repeated while the server is away."""
        for _ in range(tries):
            try:
                output = self.psql(database, "-A", "-t", "-F", "\x1f", "-f", "-", input=text)
                return [line.split("\x1f") for line in output.splitlines()]
            except Failure as failure:
                said = str(failure)
                if "failed (2)" not in said and "terminat" not in said and "server closed" not in said:
                    raise Failure(f"{said.strip()}\n{text[:400]}") from None
            time.sleep(0.25)
        raise Failure(f"{said.strip()}\n{text[:400]}")

    def value(self, text, database="holdfast"):
        rows = self.rows(text, database)
        return rows[0][0] if rows else None

    def load(self, database, *more):
        """A new database with the schema, and with the SQL of more files."""
        self.sql(f"create database {database}")
        for file in [*sorted(MIGRATIONS.glob("[0-9]*.sql")), *sorted(MIGRATIONS.glob("functions/*.sql")), *more]:
            # Read here: the server's user may not be able to see our directory.
            self.psql(database, "-1", "-f", "-", input=file.read_text())

    def log(self):
        with contextlib.suppress(OSError):
            return (self.directory / "log").read_text(errors="replace").splitlines()
        return []


class PgBouncer:
    """A pooler in transaction mode between the workers and the server."""

    def __init__(self, directory, server_port):
        self.port, identity = free_port(), account()
        directory.mkdir()
        (directory / "users").write_text('"holdfast" ""\n')
        (directory / "pgbouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server_port}\n[pgbouncer]\nlisten_addr=127.0.0.1\n"
            f"listen_port={self.port}\nunix_socket_dir=\nauth_type=trust\nauth_file={directory}/users\n"
            "pool_mode=transaction\nmax_client_conn=200\ndefault_pool_size=8\n"
            "ignore_startup_parameters=options,extra_float_digits\nserver_login_retry=1\nlogfile=\n"
        )
        for path in (directory, *directory.iterdir()):
            give(path, identity)
        self.process = subprocess.Popen(
            [shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", "-q", directory / "pgbouncer.ini"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(directory / "log", "w"),
            cwd=directory,
            **identity,
        )
        until("PgBouncer listens", self.answers, 20)

    def answers(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()
