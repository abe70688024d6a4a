"""Makes data directories of ArchiveBox: the index of a release (archivebox/*.sql, or one that the release itself has
made) with snapshots, tags, results and files, some of them broken. Says what an import should find."""

import datetime
import gzip
import hashlib
import io
import json
import os
import sqlite3
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
START = datetime.datetime(2021, 3, 4, 5, 6, 7, 890000)
TITLES = ["Plain", "Ünïcödé 鳥 🦅", "\x1b[31mred\x07", "\u202egnorw", "<script>alert(1)</script>", "", None, "x" * 500]


def identity(*names):
    return hashlib.md5("/".join(map(str, names)).encode()).hexdigest()


def abid(prefix, key):
    """As release 0.8 reads it: a ULID behind the name of its kind."""
    return f"{prefix}_0{key[:25].upper()}"


class Directory:
    """`data`: an empty directory, or one in which `archivebox init` was run. `pages`: how many are archived."""

    def __init__(self, data, version, pages=200):
        self.data, self.version = Path(data), version
        self.legacy = version < "0.9"
        self.archived, self.pending, self.unusable = [], [], 0
        self.data.mkdir(parents=True, exist_ok=True)
        (self.data / "archive").mkdir(exist_ok=True)
        (self.data / "ArchiveBox.conf").touch()
        fresh = not (self.data / "index.sqlite3").exists()
        self.index = sqlite3.connect(self.data / "index.sqlite3")
        if fresh:
            self.index.executescript((HERE / f"archivebox/{version}.sql").read_text())
        self.tags = {name: self.tag(name) for name in ("birds", "old books", "日本")}
        self.crawl = None if self.legacy else self.crawl_row("First", "sealed", "", depth=1)
        for number in range(pages):
            self.page(number)
        self.index.commit()

    def insert(self, table, **values):
        """A row; columns that need a value and are not given get an empty one."""
        for _, name, kind, needed, default, key in self.index.execute(f"pragma table_info({table})").fetchall():
            if name in values or not needed or default is not None or (key and "int" in kind.lower()):
                continue
            checked = self.index.execute("select sql from sqlite_master where name = ?", (table,)).fetchone()[0].lower()
            is_json = f'json_valid("{name}")' in checked or f"json_valid({name})" in checked
            number = any(word in kind.lower() for word in ("int", "bool"))
            values[name] = "{}" if is_json else 1 if name.endswith("by_id") else 0 if number else str(START)
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        return self.index.execute(f"insert into {table} ({names}) values ({marks})", tuple(values.values())).lastrowid

    def columns(self, table):
        return {row[1] for row in self.index.execute(f"pragma table_info({table})")}

    def tag(self, name):
        there = self.index.execute("select id from core_tag where name = ?", (name,)).fetchone()
        if there:
            return there[0]
        key = identity("tag", name)
        more = {"slug": identity("slug", name)} if "slug" in self.columns("core_tag") else {}
        if "abid" in self.columns("core_tag"):
            more |= {"id": key, "abid": abid("tag", key)}
        row = self.insert("core_tag", name=name, **more)
        return more.get("id", row)

    def crawl_row(self, label, status, urls, depth=0):
        key = identity("crawl", label)
        self.insert(
            "crawls_crawl",
            id=key,
            label=label,
            status=status,
            urls=urls,
            max_depth=depth,
            tags_str="birds",
            notes="Of March",
            created_at=str(START),
            created_by_id=1,
        )
        return key

    def snapshot(self, number, url, title="", tags=(), key=None, **more):
        key = key or identity("snapshot", number)
        added = START + datetime.timedelta(hours=number)
        stamp = f"{added.replace(tzinfo=datetime.timezone.utc).timestamp():.6f}"
        if self.legacy:
            title = title or None  # an empty one ends its own list
        if self.version == "0.7":
            more |= {"added": str(added), "updated": str(added + datetime.timedelta(minutes=9))}
        else:
            more |= {"created_at": str(added), "bookmarked_at": str(added - datetime.timedelta(days=1))}
            more |= {"modified_at": str(added), "downloaded_at": str(added + datetime.timedelta(minutes=9))}
        if "abid" in self.columns("core_snapshot"):
            more["abid"] = abid("snp", key)
        if not self.legacy:
            more = {"status": "sealed", "crawl_id": self.crawl, "fs_version": "0.9.0"} | more
        more = {"timestamp": stamp} | more
        self.insert("core_snapshot", id=key, url=url, title=title, **more)
        for tag in tags:
            self.insert("core_snapshot_tags", snapshot_id=key, tag_id=self.tags[tag])
        return key, more["timestamp"], added

    def result(self, snapshot, plugin, status, output, at, stderr=""):
        at = at + datetime.timedelta(seconds=len(plugin))
        more = {"start_ts": str(at), "end_ts": str(at + datetime.timedelta(seconds=1.5)), "status": status}
        if self.legacy:
            more |= {"extractor": plugin, "output": output, "cmd": "[]", "pwd": "/data"}
        else:
            more |= {"plugin": plugin, "output_str": output, "hook_name": f"on_Snapshot__50_{plugin}"}
            more |= {"output_files": "{}"}
        row = identity("result", snapshot, plugin, at)
        if "uuid" in self.columns("core_archiveresult"):
            more["uuid"] = row
        else:
            more["id"] = row
        if "abid" in self.columns("core_archiveresult"):
            more["abid"] = abid("res", row)
        self.insert("core_archiveresult", snapshot_id=snapshot, **more)

    def place(self, key, stamp, host):
        """The directory of a snapshot."""
        if self.legacy:
            return self.data / "archive" / stamp
        return self.data / "archive/users/system/snapshots/20210304" / host / key

    def page(self, number):
        host = f"site{number % 7}.test"
        path = f"vögel/{number}" if number % 4 == 1 else f"page/{number}?q=a+b"
        url = f"https://{host}/{path}"
        tags = [tag for tag, every in (("birds", 3), ("old books", 5), ("日本", 50)) if number % every == 0]
        key, stamp, at = self.snapshot(number, url, TITLES[number % len(TITLES)], tags)
        failed = number % 10 == 3
        lost = number % 10 == 7 and number % 20 == 7
        self.result(key, "title", "failed" if lost else "succeeded", "The title", at)
        self.result(key, "wget", "failed" if failed or lost else "succeeded", f"{host}/index.html", at)
        self.result(key, "archive_org" if self.legacy else "archivedotorg", "skipped", "", at)
        if self.legacy and number % 6 == 0:  # an older one that failed: the last success counts
            self.result(key, "wget", "failed", "timed out", at + datetime.timedelta(days=-1))
        self.archived.append(
            {
                "id": key,
                "url": url,
                "timestamp": stamp,
                "tags": sorted(tags),
                "outcome": "failed" if lost else "partial" if failed else "succeeded",
            }
        )
        self.files(self.place(key, stamp, host), host, url, number)

    def files(self, directory, host, url, number):
        top = (lambda plugin: directory) if self.legacy else (lambda plugin: directory / plugin)
        texts = {
            top("wget") / host / "index.html": f"<title>{number}</title>",
            top("wget") / host / "bild ü" / f"{number}.txt": "x" * number,
            top("htmltotext") / "htmltotext.txt": f"kestrel number{number} flies",
            directory / "readability" / "content.txt": f"kestrel number{number} hovers",
            directory / "index.json": json.dumps(
                {
                    "timestamp": directory.name,
                    "url": url,
                    "title": None,
                    "tags": "",
                    "sources": [],
                    "updated": str(START),
                    "history": {},
                }
            ),
            directory / "index.html": "<p>own page of ArchiveBox</p>",
        }
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        warc = top("wget") / "warc" / "1614834367.warc.gz"
        warc.parent.mkdir(parents=True, exist_ok=True)
        warc.write_bytes(warc_of(url, f"<title>{number}</title>"))

    # What is broken: each is named in the report, and costs nothing else.

    def break_things(self):
        """Returns the paths or words by which the report names them."""
        report = []
        first = self.archived[0]
        directory = self.place(first["id"], first["timestamp"], "site0.test")
        (directory / "readability/passwd").symlink_to("/etc/passwd")
        (directory / "readability/up").symlink_to("../../../../..")
        (directory / "readability/inside.txt").symlink_to("content.txt")
        os.mkfifo(directory / "readability/pipe")
        (directory / os.fsdecode(b"caf\xe9.txt")).write_text("Latin 1")
        report += ["readability/passwd", "readability/up", "readability/pipe"]
        missing = self.archived[11]
        directory = self.place(missing["id"], missing["timestamp"], "site4.test")
        directory.rename(self.data / "elsewhere")
        report.append(missing["timestamp"])
        self.snapshot(1000, "not a url")
        self.snapshot(1001, "https://site.test/bad-id", key="x" * 32)
        self.snapshot(1002, b"\xff\xfe\x00binary")  # told with U+FFFD
        self.snapshot(1003, "ftp://site.test/file")
        report += ["not a url", "is not a UUID", "ftp"]
        self.unusable += 4
        # A timestamp that leads out of the archive; the page itself is fine.
        key, _, at = self.snapshot(1004, "https://site.test/escape", timestamp="../../../../etc")
        self.result(key, "title", "succeeded", "Escape", at)
        self.archived.append({"id": key, "url": "https://site.test/escape", "tags": [], "outcome": "succeeded"})
        report.append("../../../../etc")
        self.index.commit()
        return report

    def add_pending(self, count=5, site="https://later.test"):
        more = {} if self.legacy else {"status": "queued"}
        for number in range(2000, 2000 + count):
            url = f"{site}/{number}"
            self.snapshot(number, url, "Later", ["birds"], **more)
            self.pending.append(url)
        if not self.legacy:
            self.crawl_row("Waiting", "queued", f"{site}/a\n# comment\n{site}/b\n")
            self.pending += [f"{site}/a", f"{site}/b"]
        self.index.commit()

    def state(self):
        """All that a program could have changed in it, but for the times of reading."""
        found = {}
        for path in [self.data, *sorted(self.data.rglob("*"))]:
            about = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
            found[os.fsencode(path)] = (about.st_mode, about.st_mtime_ns, about.st_size, digest)
        return found


def warc_of(url, body):
    """A compressed WARC file with the response of a page."""
    url = "".join(c if c.isascii() else "".join(f"%{b:02X}" for b in c.encode()) for c in url)
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url)}>\r\n"
        f"WARC-Date: 2021-03-04T05:06:07Z\r\nWARC-Target-URI: {url}\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
    ).encode()
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(head + http + b"\r\n\r\n")
    return buffer.getvalue()
