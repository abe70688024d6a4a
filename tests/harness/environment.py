"""Python environments with packages of PyPI, made once, beside the programs under test."""

import fcntl
import subprocess
import sys

# What replays and indexes WARC and WACZ files.
REPLAY = ("pywb==2.10.0", "warcio", "wacz", "setuptools", "wheel")


def python_with(place, *packages):
    """The directory of the programs of an environment that has these packages. One suite makes it; others wait."""
    done, names = place / "done", " ".join(packages)
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists() or done.read_text() != names:
            subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=120)
            subprocess.run([place / "bin/pip", "install", "-q", "--no-compile", *packages], check=True, timeout=600)
            done.write_text(names)
    return place / "bin"
