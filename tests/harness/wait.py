"""Waiting with a deadline, free ports, and an end in good order."""

import contextlib
import random
import signal
import socket
import sys
import time


class Failure(AssertionError):
    """Something happened that must not, or did not happen in time."""


def until(what, condition, seconds=120, explain=None):
    """Asks until the condition is true, and returns its value. Otherwise fails, with what `explain()` says."""
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if value := condition():
            return value
        now = time.monotonic()
        if now > deadline:
            raise Failure(f"not within {seconds:g} s: {what}" + (f"\n{explain()}" if explain else ""))
        # A question may be a process of its own (psql): those who wait leave the processors to what they wait for.
        time.sleep(max(0.02, 4 * (now - asked)))


def free_port():
    """A port below those that outgoing connections take: else one of another test may have it before its user does."""
    while True:
        port = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            return port


def end_in_order():
    """SIGTERM and SIGHUP end this program as an exception does, so what it has started and made is removed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
