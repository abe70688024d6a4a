#!/usr/bin/env python3
"""A web site with everything that archivers meet, on a local port, for the tests.

    site.py [--host 127.0.0.1] [--port 0] [--ready-file FILE]

The first line on stdout is the site's URL, printed once it is listening; the ready file gets the same line.
SIGTERM ends it. The index page links everything.
"""

import argparse
import contextlib
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pages
import traffic  # noqa: F401, it registers its pages


class Request(BaseHTTPRequestHandler):
    """One connection. A page is a function of the request (see pages.py) that answers with the methods below."""

    protocol_version = "HTTP/1.1"
    server_version = "TestSite/1"
    sys_version = ""
    timeout = 120

    def do_GET(self):
        self.answer()

    do_HEAD = do_POST = do_DELETE = do_GET

    def answer(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        self.url_path = parts.path
        self.query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        try:
            pages.find(self.url_path)(self)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True  # the client went away, as it may

    def number(self, name, default, maximum):
        try:
            return min(float(self.query.get(name, default)), maximum)
        except ValueError:
            return default

    def send(self, body, content_type="text/html; charset=utf-8", status=200, headers=()):
        body = body if isinstance(body, bytes) else body.encode()
        self.start(status, [("Content-Type", content_type), ("Content-Length", str(len(body))), *headers])
        self.write(body)

    def start(self, status, headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def write(self, data):
        """A piece of the body; nothing for HEAD."""
        if self.command != "HEAD":
            self.wfile.write(data)

    def redirect(self, status, location):
        self.send("", status=status, headers=[("Location", location)])

    def pause(self, seconds):
        """Waits, but not beyond the end of the server."""
        return self.server.stopping.wait(seconds)

    def log_message(self, *_arguments):
        pass


class Site(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address):
        super().__init__(address, Request)
        self.stopping = threading.Event()

    @property
    def url(self):
        return f"http://{self.server_address[0]}:{self.server_address[1]}/"

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a client that broke off is nobody's error
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ready-file")
    options = parser.parse_args()

    site = Site((options.host, options.port))

    def stop(_signal, _frame):
        site.stopping.set()
        threading.Thread(target=site.shutdown).start()  # it waits for the loop that this handler interrupted

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print(site.url, flush=True)
    if options.ready_file:
        temporary = options.ready_file + ".part"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(site.url + "\n")
        os.replace(temporary, options.ready_file)
    with contextlib.closing(site.socket):
        site.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
