#!/usr/bin/env python3
"""Makes the Debian package of a build and looks at it: what is in it, what it needs, what lintian says, that it works.

    tests/deploy/package.py --build DIRECTORY | --package FILE [--root DIRECTORY]

--root: a bare Debian of the same release (debootstrap --variant=minbase), with a way to the registry. The package is
installed there with all that it recommends, archives a page of a site on this machine, is upgraded while it archives
another one, and is removed again.
Status 77: cpack, dpkg-deb or lintian is missing.
"""

import argparse
import contextlib
import functools
import hashlib
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPECTED = """
bin/holdfast bin/holdfast-capture bin/holdfast-guard bin/holdfast-shim libexec/holdfast/abxpkg
share/holdfast/plugins/title/config.json lib/systemd/system/holdfast-worker@.service share/man/man1/holdfast.1.gz
share/bash-completion/completions/holdfast share/doc/holdfast/copyright share/doc/holdfast/examples/holdfast.yaml
""".split()
DEPENDENCIES = ["libpqxx", "libc6", "wget", "ca-certificates", "adduser"]
RECOMMENDED = ["postgresql", "fonts-noto-cjk"]
# In a mere chroot, the kernel lets nothing make a user namespace: neither the sandbox of hooks nor Chromium's.
ENTER = 'mount --rbind "$0" "$0"; cd "$0"; pivot_root . mnt; umount -l mnt; exec "$@"'
PAGE = "<!doctype html><title>A page for the package</title><p>It is here.\n"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=900, **options)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make(build, into):
    """The package of a build directory. Its times are fixed, so that two runs can be compared."""
    into.mkdir()
    run(
        "cpack",
        "-G",
        "DEB",
        "-B",
        into,
        "--config",
        build / "CPackConfig.cmake",
        cwd=build,
        env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
    )
    (package,) = into.glob("*.deb")
    return package


@contextlib.contextmanager
def site(directory):
    """A page on loopback, also at /slow, which waits for go; gives its URL, asked and go."""
    directory.mkdir()
    (directory / "index.html").write_text(PAGE)
    (directory / "slow").mkdir()
    (directory / "slow/index.html").write_text(PAGE)
    asked, go = threading.Event(), threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/slow"):
                asked.set()
                go.wait(300)
            super().do_GET()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(directory)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked, go
    finally:
        server.shutdown()


def check_contents(package):
    listed = {line.split()[5].removeprefix("./usr/") for line in run("dpkg-deb", "-c", package).splitlines()}
    missing = [path for path in EXPECTED if path not in listed]
    assert not missing, f"not in the package: {missing}"
    depends, recommends = (run("dpkg-deb", "-f", package, field) for field in ("Depends", "Recommends"))
    assert all(name in depends for name in DEPENDENCIES), depends
    assert all(name in recommends for name in RECOMMENDED), recommends


def check_program(package, scratch, url):
    """Unpacked anywhere, the program finds its parts and archives a page."""
    run("dpkg-deb", "-x", package, scratch / "unpacked")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        "HOLDFAST_DATA_DIR": str(scratch / "data"),
        "HOLDFAST_URLS_ALLOW_PRIVATE": "true",
    }
    program = scratch / "unpacked/usr/bin/holdfast"
    out = run(program, "add", "--wait", "--plugins", "wget,title", url, env=environment, cwd=scratch)
    assert '"outcome":"succeeded"' in out, out
    (title,) = (scratch / "data/archive").rglob("title/title.txt")
    assert title.read_text().strip() == "A page for the package"


def newer(package, scratch):
    """The same package with a higher version."""
    run("dpkg-deb", "-R", package, scratch / "newer")
    control = scratch / "newer/DEBIAN/control"
    control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1+upgrade", control.read_text()))
    run("dpkg-deb", "--root-owner-group", "-Znone", "-b", scratch / "newer", scratch / "newer.deb")
    return scratch / "newer.deb"


def check_upgraded(package, scratch, root, inside, url, asked, go):
    """A page that is being captured is sealed while and after the package is upgraded."""
    shutil.copy(newer(package, scratch), root / "tmp/newer.deb")
    add = [*map(str, inside), "HOLDFAST_URLS_ALLOW_PRIVATE=true", "holdfast", "add", "--wait"]
    busy = subprocess.Popen([*add, f"{url}slow/"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert asked.wait(300), "the page was not asked for"
        run(*inside, "apt-get", "-q", "-y", "install", "/tmp/newer.deb")
        assert busy.poll() is None, busy.communicate()
        go.set()
        out, err = busy.communicate(timeout=300)
    finally:
        go.set()
        busy.kill()
    assert '"outcome":"succeeded"' in out, f"{out}\n{err}"
    assert "+upgrade" in run(*inside, "dpkg-query", "-W", "holdfast")
    assert '"outcome":"succeeded"' in run(*add, url)
    run(*inside, "holdfast", "check")
    run(*inside, "holdfast", "verify", "--all")
    print("upgraded while a page was captured, which is sealed")


def check_installed(package, root, url, upgrade):
    """As a newcomer would: apt, then one command. Chromium runs too."""
    shutil.copy(package, root / "tmp/holdfast.deb")
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    shutil.copytree("/etc/apt/apt.conf.d", root / "etc/apt/apt.conf.d", dirs_exist_ok=True)
    inside = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-euc",
        ENTER,
        root,
        "env",
        "-i",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "DEBIAN_FRONTEND=noninteractive",
    ]
    run("mount", "-t", "proc", "proc", root / "proc")
    run("mount", "--rbind", "--make-rslave", "/dev", root / "dev")
    try:
        started = time.monotonic()
        run(*inside, "sh", "-c", "apt-get -q update && apt-get -q -y install /tmp/holdfast.deb")
        installed = time.monotonic()
        print(f"installed with all that it recommends: {installed - started:.0f} s")
        out = run(*inside, "HOLDFAST_URLS_ALLOW_PRIVATE=true", "holdfast", "add", "--wait", url)
        print(out.strip())
        print(f"archived: {time.monotonic() - installed:.0f} s")
        assert '"outcome":"succeeded"' in out, out
        print(run(*inside, "holdfast", "list", "snapshots"))
        upgrade(inside)
        run(*inside, "apt-get", "-q", "-y", "purge", "holdfast")
    finally:
        run("umount", "-l", root / "dev")
        run("umount", "-l", root / "proc")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--build", type=pathlib.Path)
    what.add_argument("--package", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path)
    options = parser.parse_args()
    if not all(map(shutil.which, ("cpack", "dpkg-deb", "dpkg-shlibdeps", "lintian"))):
        return 77
    with tempfile.TemporaryDirectory(prefix="holdfast-package-") as name:
        scratch = pathlib.Path(name)
        scratch.chmod(0o755)  # PostgreSQL's user walks through it
        package = options.package or make(options.build.resolve(), scratch / "first")
        check_contents(package)
        if options.build:
            again = make(options.build.resolve(), scratch / "second")
            digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (package, again)}
            assert len(digests) == 1, "the same build gave two packages that differ"
        print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB")
        print(run("lintian", "--allow-root", "--fail-on", "error,warning", package))
        with site(scratch / "site") as (url, *slow):
            check_program(package, scratch, url)
            if options.root:
                root = options.root.resolve()
                check_installed(
                    package, root, url, lambda inside: check_upgraded(package, scratch, root, inside, url, *slow)
                )
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
