"""In a network namespace: a public address whose page redirects to a private one. led_inside.py HOOK runs the hook on it.

Each request is a line on stderr."""

import http.server
import subprocess
import sys
import threading

PUBLIC = "93.184.216.34"


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, file=sys.stderr)
        self.send_response(302 if self.path == "/" else 200)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/inside")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["ip", "address", "add", f"{PUBLIC}/32", "dev", "lo"], check=True)
site = http.server.ThreadingHTTPServer(("", 0), Site)
threading.Thread(target=site.serve_forever, daemon=True).start()
sys.exit(subprocess.run([sys.argv[1], f"--url=http://{PUBLIC}:{site.server_address[1]}/"], check=False).returncode)
