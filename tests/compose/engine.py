"""The docker program with an engine behind it: the one that answers, or one of our own that ends with us. Base images
that cannot be pulled are made."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POSTGRES = "postgres:17"


class Failure(Exception):
    """Something does not hold."""


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def mirror():
    """Where this machine's own packages come from; HOLDFAST_DEBIAN_MIRROR names another place."""
    given = os.environ.get("HOLDFAST_DEBIAN_MIRROR")
    if given:
        return given
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]


def skip(reason):
    print(f"{sys.argv[0]}: skipped: {reason}", file=sys.stderr)
    sys.exit(77)


def wait_for(what, condition, seconds, every=0.5):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"waited {seconds} s in vain for: {what}")
        time.sleep(every)


def compose_words(docker="docker"):
    """The command of docker compose, version 2; None: there is none. Version 1 cannot read our files."""
    for words in ([docker, "compose"], ["docker-compose"]):
        if shutil.which(words[0]):
            asked = subprocess.run([*words, "version", "--short"], capture_output=True, text=True, check=False)
            if asked.returncode == 0 and not asked.stdout.startswith("1."):
                return words
    return None


class Engine:
    """The docker program with an engine behind it."""

    def __init__(self, directory):
        self.directory, self.own, self.log = directory, None, None
        self.docker = next(
            (path for path in ("/usr/bin/docker", shutil.which("docker")) if path and os.access(path, os.X_OK)), None
        )
        if not self.docker:
            skip("there is no docker program (Debian: apt-get install docker.io docker-compose docker-buildx)")
        self.environment = {**os.environ, "DOCKER_BUILDKIT": "1", "COMPOSE_DOCKER_CLI_BUILD": "1"}
        if self.call("info", check=False).returncode != 0:
            self.start()

    def compose(self):
        """The words before those of docker compose."""
        words = compose_words(self.docker)
        if not words:
            self.stop()
            skip("there is no docker compose of version 2 (Debian 13: apt-get install docker-compose)")
        return words

    def start(self):
        if os.geteuid() != 0 or not shutil.which("dockerd"):
            skip("no Docker engine answers, and to start one takes root and dockerd (Debian: docker.io)")
        self.directory.mkdir(parents=True)
        address = f"unix://{self.directory}/docker.sock"
        self.log = open(self.directory / "log", "w", encoding="utf-8")
        self.own = subprocess.Popen(
            [
                "dockerd",
                "--data-root",
                self.directory / "data",
                "--exec-root",
                self.directory / "exec",
                "--pidfile",
                self.directory / "pid",
                "-H",
                address,
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        self.environment["DOCKER_HOST"] = address
        try:
            wait_for(
                "dockerd answers",
                lambda: self.own.poll() is not None or self.call("info", check=False).returncode == 0,
                60,
            )
        except Failure as failure:
            self.stop()
            skip(str(failure))
        if self.own.poll() is not None:
            skip(
                "dockerd does not start here: "
                + (self.directory / "log").read_text(errors="replace").strip().splitlines()[-1]
            )

    def stop(self):
        if self.own:
            self.own.terminate()
            self.own.wait(timeout=60)
            self.log.close()
            # The network of containers with the machine's own network; dockerd leaves it mounted.
            subprocess.run(["umount", "-q", self.directory / "exec/netns/default"], check=False)
            shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, *arguments, check=True, timeout=3600, **more):
        done = subprocess.run(
            [self.docker, *map(str, arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=timeout,
            check=False,
            **more,
        )
        if check and done.returncode != 0:
            raise Failure(f"docker {' '.join(map(str, arguments))}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done

    def has_image(self, name):
        return self.call("image", "inspect", name, check=False).returncode == 0

    def debian(self, suite):
        """The name of its image."""
        base = f"debian:{suite}-slim"
        if not self.has_image(base) and self.call("pull", "-q", base, check=False, timeout=120).returncode != 0:
            self.bootstrap(base, suite)
        return base

    def postgres(self, directory):
        """Made from what is in the directory if it cannot be pulled."""
        if not self.has_image(POSTGRES) and self.call("pull", "-q", POSTGRES, check=False, timeout=120).returncode != 0:
            say(f"building a stand-in for {POSTGRES}")
            self.call("build", "-t", POSTGRES, directory)

    def bootstrap(self, base, suite):
        if os.geteuid() != 0 or not shutil.which("debootstrap"):
            skip(f"{base} cannot be pulled, and to make it takes root and debootstrap")
        source = mirror()
        say(f"making {base} by debootstrap from {source}")
        with tempfile.TemporaryDirectory(prefix="holdfast-base-") as where:
            root = Path(where) / "root"
            done = subprocess.run(
                ["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root, source],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                skip("debootstrap: " + done.stdout[-500:])
            (root / "etc/apt/sources.list").write_text(
                f"deb {source} {suite} main\ndeb {source} {suite}-updates main\n"
            )
            (root / "etc/dpkg/dpkg.cfg.d/docker").write_text(
                "".join(f"path-exclude /usr/share/{name}/*\n" for name in ("doc", "man", "locale"))
            )
            (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
            (root / "usr/sbin/policy-rc.d").chmod(0o755)
            for name in (
                "usr/share/doc",
                "usr/share/man",
                "usr/share/locale",
                "var/lib/apt/lists",
                "var/cache/apt",
                "var/log",
            ):
                shutil.rmtree(root / name, ignore_errors=True)
                (root / name).mkdir(parents=True, exist_ok=True)
            (root / "etc/machine-id").unlink(missing_ok=True)
            tar = subprocess.Popen(["tar", "-C", root, "--numeric-owner", "-c", "."], stdout=subprocess.PIPE)
            subprocess.run(
                [
                    self.docker,
                    "import",
                    "-c",
                    'CMD ["bash"]',
                    "-c",
                    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "-",
                    base,
                ],
                stdin=tar.stdout,
                stdout=subprocess.DEVNULL,
                env=self.environment,
                check=True,
            )
            tar.wait()
