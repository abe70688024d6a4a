"""Python environments with packages of PyPI, made once, beside the programs under test."""

import subprocess
import sys


def python_with(place, *packages):
    """The directory of the programs of an environment that has these packages."""
    done, names = place / "done", " ".join(packages)
    if not done.exists() or done.read_text() != names:
        subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=120)
        subprocess.run([place / "bin/pip", "install", "-q", "--no-compile", *packages], check=True, timeout=600)
        done.write_text(names)
    return place / "bin"
