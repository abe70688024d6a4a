"""A web of three machines in a network namespace: runs a command in it as some user.

    unshare --net --mount small_web.py DIRECTORY UID GID COMMAND...

public.example and unseen.example have a public address; inside.example is a machine of the private network, and
169.254.169.254 the metadata service of a cloud. DIRECTORY/private.log gets a line for each request that a private
machine was sent."""

import ctypes
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PUBLIC, INSIDE, METADATA = "93.184.216.34", "10.9.9.9", "169.254.169.254"
PAGES = {
    "/plain": "<title>plain</title><p>public words",
    "/frame": f"<title>frame</title><p>public words<iframe src='http://inside.example/frame'></iframe>"
    f"<img src='http://{METADATA}/image'><iframe src='http://{INSIDE}/frame'></iframe>"
    "<iframe src='http://[::ffff:10.9.9.9]/frame'></iframe><link rel=stylesheet href='http://inside.example/style.css'>",
}


class Handler(BaseHTTPRequestHandler):
    private_log = None

    def answer(self, with_body):
        if self.connection.getsockname()[0] != PUBLIC:
            with open(self.private_log, "a") as log:
                log.write(f"{self.connection.getsockname()[0]} {self.command} {self.path}\n")
            return self.send(200, {}, "TOP SECRET" if with_body else "")
        if self.path == "/head" and with_body:
            return self.send(302, {"Location": "http://inside.example/redirect"}, "")
        body = PAGES.get(self.path, "<p>public words" if self.path == "/head" else None)
        forged = {"X-Holdfast-Egress": "public.example: Connection refused"}  # as if the proxy had said it
        return self.send(200 if body else 404, forged, body or "") if with_body else self.send(200, {}, "")

    def send(self, status, headers, body):
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "text/html", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)

    def log_message(self, *_):
        pass


def main():
    directory, user, group, *command = sys.argv[1:]
    place = Path(directory)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (PUBLIC, INSIDE, METADATA):
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    hosts = place / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{PUBLIC} public.example unseen.example\n{INSIDE} inside.example\n")
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    Handler.private_log = place / "private.log"
    Handler.private_log.touch()
    os.chown(Handler.private_log, int(user), int(group))
    server = ThreadingHTTPServer(("0.0.0.0", 80), Handler)
    parent = os.getpid()
    in_child = os.fork() == 0
    if int(user) != os.getuid():
        os.setgroups([])
        os.setgid(int(group))
        os.setuid(int(user))
    if in_child:  # the same user: the end of the command may signal it
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with the command
        if os.getppid() == parent:
            server.serve_forever()
        os._exit(0)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
