"""A web server inside the test: every request is noted with the moment at which it arrived.

Each page is made up from its path; every address 127.x.y.z is a site of its own. A page is a list of lines "link URL"."""

import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Web(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self):
        self.lock = threading.Lock()
        self.requests = []  # (time of arrival, time of the answer, host, path, status)
        self.robots = {}  # host -> (status, text)
        self.pages = {}  # path -> (status, headers, body), or a function of the number of requests for it so far
        self.asked = {}
        super().__init__(("0.0.0.0", 0), Request)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def url(self, path, host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def seen(self, host=None, path=None):
        with self.lock:
            found = [
                r
                for r in self.requests
                if (host is None or r[2] == host) and (path is None or re.fullmatch(path, r[3]))
            ]
        return sorted(found)

    def handle_error(self, request, client_address):
        pass  # a client that was killed

    def answer(self, host, path, query):
        with self.lock:
            number = self.asked[host, path] = self.asked.get((host, path), 0) + 1
        if path == "/robots.txt":
            status, text = self.robots.get(host, (404, ""))
            return status, {}, text
        if path in self.pages:
            page = self.pages[path]
            return page(number) if callable(page) else page
        # /farm/N links a thousand new pages; ?links=N: as many.
        if found := re.fullmatch(r"/farm/(\d+)", path):
            links, first = int(query.get("links", ["1000"])[0]), int(found[1])
            suffix = "" if links == 1000 else f"?links={links}"
            lines = (f"link {self.url(f'/farm/{first * links + n + 1}{suffix}', host)}" for n in range(links))
            return 200, {}, "\n".join(lines) + "\n"
        time.sleep(float(query.get("seconds", ["0"])[0]))
        return 200, {}, f"page {path} {'x' * int(query.get('bytes', ['10'])[0])}\n"


class Request(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        arrived = time.time()
        parts = urlsplit(self.path)
        host = self.headers.get("Host", "").rpartition(":")[0]
        status, headers, body = self.server.answer(host, parts.path, parse_qs(parts.query))
        body = body.encode()
        with self.server.lock:
            self.server.requests.append((arrived, time.time(), host, self.path, status))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Content-Type": "text/plain", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
