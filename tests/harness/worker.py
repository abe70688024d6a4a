"""What /proc says of the program's processes."""

import contextlib
import glob
import pathlib


def read(path):
    """The bytes of a file; none if it is gone."""
    with contextlib.suppress(OSError):
        return pathlib.Path(path).read_bytes()
    return b""


def processes():
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def living(pid):
    state = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(state) and state[0] not in (b"Z", b"X")


def process_table():
    """pid -> (parent, state, name) of every process."""
    table = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        text = read(path).decode(errors="replace")
        if text:
            name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            table[int(path.split("/")[2])] = (int(rest[1]), rest[0], name)
    return table


def processes_below(top):
    """(pid, name) of the living descendants of a process."""
    table = process_table()
    below, found = {top}, []
    while True:
        more = [pid for pid, entry in table.items() if entry[0] in below and pid not in below]
        if not more:
            return [(pid, table[pid][2]) for pid in found if table[pid][1] not in "ZX"]
        below.update(more)
        found += more


def cookies():
    """pid -> HOLDFAST_COOKIE of every process that has one."""
    found = {}
    for pid in processes():
        for entry in read(f"/proc/{pid}/environ").split(b"\0"):
            if entry.startswith(b"HOLDFAST_COOKIE="):
                found[pid] = entry[16:].decode()
    return found


def tail(path, lines=15):
    """The last lines of a log, indented."""
    return "\n".join("    " + line for line in read(path).decode(errors="replace").splitlines()[-lines:])
