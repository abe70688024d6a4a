#!/usr/bin/env -S python3 -IB
"""SHA-256 of everything the other plugins left: hashes/hashes.json

{root_hash, total_size, files: [{path, size, sha256}]}; root_hash is the SHA-256 of the lines
"<sha256>  <path>" in the order of the paths, what `sha256sum` would print.
"""

import hashlib
import os
import re
import stat
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import hook

# The runner's own files, which do not outlast the run.
RUNNER_FILE = re.compile(r".*\.[0-9a-f]{32}\.(stdout\.log|stderr\.log|pid|sh)")


def hashes(job):
    files, total = [], 0
    for path in sorted(regular_files(job)):
        digest, size = sha256(job, path)
        if digest is None:
            continue  # gone meanwhile: a background hook's temporary file
        files.append({"path": os.fsencode(path.relative_to(job.snapshot)).decode("utf-8", "replace"), "size": size, "sha256": digest})
        total += size
    if not files:
        raise hook.NoResults("no other plugin has left a file")
    lines = "".join(f"{file['sha256']}  {file['path']}\n" for file in files)
    root_hash = hashlib.sha256(lines.encode()).hexdigest()
    job.write_json("hashes.json", {"root_hash": root_hash, "total_size": total, "files": files})
    return root_hash, {"files": len(files), "total_size": total}


def regular_files(job):
    for directory, subdirectories, names in os.walk(job.snapshot):
        if Path(directory) == job.snapshot:
            subdirectories[:] = [name for name in subdirectories if name != job.plugin]
        for name in names:
            path = Path(directory, name)
            if not RUNNER_FILE.fullmatch(name) and stat.S_ISREG(path.lstat().st_mode):
                yield path


def sha256(job, path):
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                if time.monotonic() > job.deadline:
                    raise hook.Failed(f"timed out after {job.timeout:g} s")
                digest.update(piece)
                size += len(piece)
    except FileNotFoundError:
        return None, 0
    return digest.hexdigest(), size


hook.run("hashes", hashes)
