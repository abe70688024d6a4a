"""A proxy between a holdfast and its database. What it does with bytes is the network's weather."""

import contextlib
import os
import pathlib
import shutil
import socket
import tempfile
import threading


class Proxy:
    """`target`: the port of a server on this machine, or the directory of its socket. It listens on a port of its own, as
    port 5432 of `address`, or for a target that is a directory with a socket in `directory`."""

    def __init__(self, target, address=None):
        self.target, self.mode, self.changed, self.pairs = target, "pass", threading.Condition(), set()
        self.directory = self.port = None
        if isinstance(target, int):
            self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        elif address:
            self.listener = socket.create_server((address, 5432))
        else:
            self.directory = tempfile.mkdtemp(prefix="holdfast-proxy-")
            os.chmod(self.directory, 0o755)
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(f"{self.directory}/.s.PGSQL.5432")
            self.listener.listen(16)
        if self.listener.family == socket.AF_INET:
            self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    class Pair:
        def __init__(self, client, server):
            self.client, self.server, self.dead, self.copied = client, server, False, 0

        def close(self):
            for end in (self.client, self.server):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def connect(self):
        if isinstance(self.target, int):
            server = socket.create_connection(("127.0.0.1", self.target), 5)
            server.settimeout(None)
            return server
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(pathlib.Path(self.target) / ".s.PGSQL.5432"))
        return server

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.mode in ("refuse", "hold"):
                client.close()
                continue
            try:
                server = self.connect()
            except OSError:
                client.close()
                continue
            pair = Proxy.Pair(client, server)
            for end in (client, server):
                if end.family == socket.AF_INET:
                    with contextlib.suppress(OSError):  # gone again already: what copies will notice
                        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.changed:
                pair.dead = self.mode == "swallow"
                self.pairs.add(pair)
            threading.Thread(target=self.copy, args=(pair, client, server, True), daemon=True).start()
            threading.Thread(target=self.copy, args=(pair, server, client, False), daemon=True).start()

    def copy(self, pair, source, sink, from_client):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                with self.changed:
                    self.changed.wait_for(lambda: self.mode != "hold")
                # What has lost a byte stays dead: it looks open, and never says anything again.
                if pair.dead or (self.mode == "deaf" and not from_client):
                    pair.dead = pair.dead or self.mode != "deaf"
                    continue
                sink.sendall(data)
        pair.close()
        with self.changed:
            self.pairs.discard(pair)
            pair.copied += 1
            if pair.copied == 2:  # both directions are over
                pair.client.close()
                pair.server.close()

    def set(self, mode):
        """pass; refuse: no connection gets through, sessions are cut; swallow: everything looks open, nothing arrives, for
        these sessions not even later; deaf: what the client says arrives, no answer does; hold: nothing passes for now,
        and no connection gets through (nor does the request to cancel what is on its way).
        """
        with self.changed:
            self.mode = mode
            for pair in self.pairs:
                pair.dead = pair.dead or mode == "swallow"
            self.changed.notify_all()
        if mode == "refuse":
            self.cut()

    def cut(self):
        """Ends the sessions that there are."""
        with self.changed:
            pairs = set(self.pairs)
        for pair in pairs:
            pair.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.set("pass")
        self.cut()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)
