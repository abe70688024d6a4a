#!/usr/bin/env python3
"""Serves the demonstration site on this machine only, until it is told to stop.

    serve.py [--port 0] [--ready-file FILE]

The first line on stdout is the site's URL, printed once it is listening.
"""

import argparse
import functools
import os
import signal
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parent / "site"


class Page(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_arguments):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ready-file")
    options = parser.parse_args()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    with ThreadingHTTPServer(("127.0.0.1", options.port), functools.partial(Page, directory=SITE)) as server:
        server.daemon_threads = True
        url = f"http://127.0.0.1:{server.server_port}/"
        print(url, flush=True)
        if options.ready_file:
            with open(options.ready_file + ".part", "w", encoding="utf-8") as file:
                file.write(url + "\n")
            os.replace(options.ready_file + ".part", options.ready_file)
        server.serve_forever()


if __name__ == "__main__":
    main()
