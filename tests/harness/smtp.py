"""A mail server of a test's own, in threads of the test: it keeps what it receives."""

import email
import email.policy
import socketserver
import threading


class MailServer:
    """`behave(number)` says what the server does with its message of this number: "take" it, "hang" before the answer, or
    refuse it with a line such as "451 later". `tls`: an ssl.SSLContext; connections are encrypted from the start."""

    def __init__(self, behave=lambda number: "take", tls=None):
        self.messages, self.begun, self.lock, self.closed = [], 0, threading.Lock(), threading.Event()
        mail = self

        class Session(socketserver.StreamRequestHandler):
            def setup(self):
                if tls:
                    self.request = tls.wrap_socket(self.request, server_side=True)
                super().setup()

            def say(self, line):
                self.wfile.write(line.encode() + b"\r\n")

            def handle(self):
                self.say("220 mail.test")
                for line in self.rfile:
                    word = line.split()[0].upper() if line.split() else b""
                    if word == b"QUIT":
                        return self.say("221 bye")
                    self.say("354 go on" if word == b"DATA" else "250 ok")
                    if word == b"DATA":
                        self.take()

            def take(self):
                lines = []
                for line in self.rfile:
                    if line == b".\r\n":
                        break
                    lines.append(line.removeprefix(b"."))
                else:
                    return
                with mail.lock:
                    mail.begun += 1
                    number = mail.begun
                    mail.messages.append(
                        (number, email.message_from_bytes(b"".join(lines), policy=email.policy.default))
                    )
                answer = behave(number)
                if answer == "hang":
                    mail.closed.wait(60)
                self.say("250 taken" if answer == "take" else answer)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass  # the sender has gone

        self.server = Server(("127.0.0.1", 0), Session)
        self.url = f"{'smtps' if tls else 'smtp'}://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def got(self):
        with self.lock:
            return [message for _, message in self.messages]

    def close(self):
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()
