"""HTTP Basic and Digest of a real Apache."""

import base64
import hashlib
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from .wait import free_port, until

MODULES = Path("/usr/lib/apache2/modules")
NEEDED = "mpm_event authn_core authn_file authz_core authz_user auth_basic auth_digest".split()
HAS_APACHE = shutil.which("apache2", path="/usr/sbin") and all((MODULES / f"mod_{one}.so").exists() for one in NEEDED)
CONFIGURATION = """
ServerName localhost
DefaultRuntimeDir {place}
PidFile {place}/pid
ErrorLog {place}/error.log
Listen 127.0.0.1:{port}
User daemon
Group daemon
DocumentRoot {place}/site
<Location /basic>
  AuthType Basic
  AuthUserFile {place}/basic
</Location>
<Location /digest>
  AuthType Digest
  AuthUserFile {place}/digest
</Location>
<Location ~ "/(basic|digest)">
  AuthName members
  Require valid-user
  ForceType text/html
</Location>
"""


class Apache:
    """The user `me`, realm `members`."""

    def __init__(self, password):
        self.place = Path(tempfile.mkdtemp(prefix="holdfast-apache-"))
        self.place.chmod(0o755)
        for kind in ("basic", "digest"):
            (self.place / "site" / kind).mkdir(parents=True)
        self.set_password(password)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        loaded = "".join(f"LoadModule {one}_module {MODULES}/mod_{one}.so\n" for one in NEEDED)
        (self.place / "conf").write_text(loaded + CONFIGURATION.format(place=self.place, port=port))
        command = ["/usr/sbin/apache2", "-d", self.place, "-f", self.place / "conf", "-D", "FOREGROUND"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        until("Apache answers", self.answers)

    def answers(self):
        try:
            urllib.request.urlopen(self.url + "/basic/")
        except urllib.error.HTTPError as error:
            return error.code == 401
        except OSError:
            return False

    def set_password(self, password):
        sha = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()
        (self.place / "basic").write_text(f"me:{{SHA}}{sha}\n")
        digest = hashlib.md5(f"me:members:{password}".encode()).hexdigest()
        (self.place / "digest").write_text(f"me:members:{digest}\n")

    def pages(self, count, name):
        paths = [f"/{kind}/{name}{number}" for kind in ("basic", "digest") for number in range(count)]
        for path in paths:
            (self.place / "site" / path[1:]).write_text(f"<!doctype html><title>{path}</title><p>For members")
        return [self.url + path for path in paths]

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.place)
