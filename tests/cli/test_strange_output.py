"""What hooks print and leave, of any kind: each page is sealed at its first attempt, and everything that people read of
it, make of it or restore it from still works. Made from all types of records with all kinds of values."""

import json
import shutil
import unittest

from harness.case import FAILED_WORK, Case

DEEP = "[" * 60 + "]" * 60
# As JSON, of any type.
VALUES = {
    "null": "null",
    "true": "true",
    "empty": '""',
    "word": '"word"',
    "blank": '" \\t "',
    "nul": '"a\\u0000b"',
    "half": '"a\\ud800b"',
    "controls": '"\\u001b[2J\\u0007\\u007f\\u202e\\n\\r"',
    "quotes": '"\'\\"`$(id)%s\\\\<b>&amp;--"',
    "long": json.dumps("ä" * 100_000),
    "minus": "-1",
    "minus_zero": "-0.0",
    "large": "9223372036854775808",
    "larger": "18446744073709551616",
    "huge": "1e308",
    "beyond": "1e999",
    "tiny": "1e-320",
    "year_0": '"0000-01-01T00:00:00Z"',
    "year_99999": '"99999-12-31T23:59:59Z"',
    "day_0": '"2026-00-00 25:61:61+99:99"',
    "list": '["a", 1, null, {"b": []}]',
    "object": '{"a": {"b": [1, 2]}, "": 0, "\\u0000": "\\ud800"}',
    "deep": DEEP,
    "huge_numbers": "[" + ",".join(["1e308"] * 1000) + "]",
    "tiny_numbers": "[" + ",".join(["1e-300"] * 1000) + "]",
    "no_utf8": b'"a\xff\xfe\xc0\xafb"',
    "broken": '"a',
    "path": '"../../../etc/passwd"',
    "url": '"http://a.test:99999/\\u0000?\\ud800#"',
}
MEMBERS = {
    "ArchiveResult": ["status", "output_str", "output_json", "error"],
    "Snapshot": ["url", "title", "bookmarked_at", "plugin", "tags"],
    "Tag": ["name"],
    "Binary": ["name", "abspath", "version", "sha256", "binprovider"],
    "Machine": ["config", "key", "value"],
    "RateLimit": ["host", "status", "retry_after"],
    "Redirect": ["url", "location", "status"],
    "Response": ["status", "mime"],
    "Unreachable": ["reason"],
    "Facts": ["number", "found", "theme", "http_status", "change_from", "resources", "UPPER", ""],
    "Resources": ["count", "missing"],
}
USUAL = {
    "status": '"succeeded"',
    "url": '"https://site.test/found"',
    "name": '"name"',
    "key": '"KEY"',
    "host": '"HOST"',
    "location": '"https://site.test/there"',
    "mime": '"text/html"',
}
SUCCESS = b'{"type":"ArchiveResult","status":"succeeded","output_str":"done"}\n'


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode(errors="surrogatepass")


def record(kind, member, value):
    members = {name: USUAL[name] for name in MEMBERS[kind] if name in USUAL} | {member: value}
    if kind in ("Response", "RateLimit", "Redirect") and member != "status":
        members["status"] = "200"
    parts = [b'"type":' + json.dumps(kind).encode()]
    parts += [json.dumps(name).encode() + b":" + as_bytes(text) for name, text in members.items()]
    host = f"{kind}-{member}.limited.test".lower().replace("_", "-").encode()
    return (b"{" + b",".join(parts) + b"}\n").replace(b"HOST", host)


def outputs():
    """(name, what the hook prints) of each page. Where the last record counts, each value has a page."""
    for kind, members in MEMBERS.items():
        for member in members:
            if member in ("output_json", "number", "found", "theme"):
                for name, value in VALUES.items():
                    yield (
                        f"{member}-{name}",
                        (b"" if kind == "ArchiveResult" else SUCCESS) + record(kind, member, value),
                    )
            elif kind != "Unreachable":
                records = b"".join(record(kind, member, value) for value in VALUES.values())
                yield f"{kind}-{member or 'none'}", records + SUCCESS
    yield "tags", b"".join(b'{"type":"Tag","name":"tag %d"}\n' % i for i in range(100_000)) + SUCCESS
    yield (
        "limits",
        b'{"type":"RateLimit","host":"limits.limited.test","status":429,"retry_after":0.001}\n' * 50_000 + SUCCESS,
    )
    yield "twice", b'{"type":"Tag","type":"ArchiveResult","status":"failed","status":"succeeded"}\n'
    yield "facts", b"".join(b'{"type":"Facts","f%d":"%s"}\n' % (i, b"x" * 1000) for i in range(200)) + SUCCESS


# What hooks do with their directory, in bash.
DEEDS = {
    "no_utf8_names": r"""for i in $(seq 200); do echo x >$'a\xff\xfe\n\\ "'$i; done""",
    "dots": "mkdir -p '...' '.. ' ' '; echo x >'... '; echo x >' /a'; echo x >'...'/-rf",
    "many": 'mkdir m; python3 -c \'for i in range(2000): open(f"m/{i}", "w").close()\'',
    "sparse": "truncate -s 1T sparse 2>/dev/null; true",
    "times": "echo x >old; touch -d @-99999999999 old; echo x >new; touch -d @99999999999 new",
    "own_index": "echo '{}' >../index.jsonl; echo x >../manifest-sha256.txt; mkdir -p ../index.html/a",
    "links": "ln -s . here; ln -s ../../../../../.. up; ln -s /dev/zero zero; mkfifo pipe; ln -s $'\\xff' odd",
    "locked": "mkdir -p a/b; echo x >a/b/c; chmod 000 a/b/c a/b a",
    "away": 'cd /; rmdir "$OLDPWD" || rm -rf "$OLDPWD"',
    "file_there": 'cd ..; rm -rf "$OLDPWD"; echo x >"$OLDPWD"',
    "closed": "exec >&- 2>&-; echo x >file",
    "afterwards": "(exec >&- 2>&-; sleep 0.2; echo x >late) & echo x >file",
    "blocks": 'mkdir -p ../text; printf \'%s\\n\' \'{"title":[],"url":{}}\' \'{"at":7,"text":[[]],"links":{}}\' x >../text/blocks.jsonl',
    "warc": "printf 'WARC/1.0\\r\\nWARC-Type: response\\r\\nWARC-Target-URI: http://a.test/\\r\\nContent-Length: 99999999\\r\\n\\r\\n%.0s' {1..300} >a.warc",
    "warc_odd": r"printf 'WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/\xff\x01%%2525\r\nWARC-Date: 99999-99-99T99:99:99Z\r\nContent-Type: application/http\r\nContent-Length: 22\r\n\r\nHTTP/1.1 999 \xff\r\n\r\n\r\n\r\n' >a.warc; cp a.warc b.warc.gz; : >c.warc",
    "urls": 'python3 -c \'print("\\n".join("{\\"url\\":\\"https://site.test/%d\\",\\"title\\":\\"" % i + "x" * 300 + "\\"}" for i in range(2000)))\' >urls.jsonl',
    "urls_directory": "mkdir urls.jsonl",
}


class StrangeOutput(Case):
    def everything(self, home):
        """What people see of the pages."""
        rows = home.lines("list", "snapshots", "--limit", "1000")
        results = home.lines("list", "results", "--limit", "1000")
        return (
            {row["id"]: [row[key] for key in ("url", "title", "outcome", "tags", "facts", "files")] for row in rows},
            sorted(json.dumps([row["snapshot_id"], row["plugin"], row["hook_name"], row["status"]]) for row in results),
        )

    def test_everything_works_afterwards(self):
        home = self.place(held=True)
        odd = home.path / "odd"
        odd.mkdir()
        names = []
        for name, text in outputs():
            (odd / name).write_bytes(text)
            names.append(name)
        for name, script in DEEDS.items():
            (odd / f"{name}.sh").write_text(script)
            names.append(name)
        home.hook(
            "odd",
            "on_Snapshot__50_odd.sh",
            f"if [[ -e '{odd}'/$name.sh ]]; then . '{odd}'/$name.sh; elif [[ -e '{odd}'/$name ]]; then cat '{odd}'/$name; fi",
        )
        # A host that asks for a pause gets it, so its pages come last, and one by one.
        urls = [f"https://site.test/{name}" for name in names if not self.limits(name)]
        urls += [f"https://{name.lower().replace('_', '-')}.limited.test/{name}" for name in names if self.limits(name)]
        done = home.run("add", "--depth", "1", "--max-urls", len(urls) + 40, *urls)
        self.assertIn(done.code, (0, FAILED_WORK), str(done)[-2000:])
        rows = home.lines("list", "snapshots", "--limit", "1000")
        seeds = {row["url"].rpartition("/")[2]: row for row in rows if row["depth"] == 0}
        for name in names:
            with self.subTest(name):
                row = seeds[name]
                self.assertIn(row["outcome"], ("succeeded", "partial", "failed"), row)
                self.assertEqual(row["attempts"], 1, row)
                self.assertNotRegex(str(row["reason"]), "constraint|invalid input|jsonb|SQL|bug", row)
                if name not in DEEDS:
                    self.assertEqual(row["outcome"], "succeeded", row)
        self.check_views(home)
        self.check_commands(home, seeds)
        self.check_restored(home)

    @staticmethod
    def limits(name):
        return name.startswith("RateLimit") or name == "limits"

    def check_views(self, home):
        asked = "select viewname from pg_views where schemaname = 'holdfast' order by 1"
        out = home.run("psql", "--role", "owner", "-XAtc", asked).out.split()
        self.assertGreater(len(out), 20)
        for view in out:
            with self.subTest(view):
                done = home.run(
                    "psql",
                    "--role",
                    "owner",
                    "-XAtc",
                    f"select count(*), sum(length(row_to_json(v)::text)) from holdfast.{view} v",
                )
                self.assertEqual(done.code, 0, done.err[-2000:])
        self.assertEqual(home.run("check").out, "")

    def check_commands(self, home, seeds):
        ids = [row["id"] for row in seeds.values()]
        reasons = home.run("why", "-", given="\n".join(ids))
        self.assertEqual(reasons.code, 0, str(reasons)[-2000:])
        self.assertEqual([row["id"] for row in reasons.records], ids)
        for name in ("ArchiveResult-output_str", "found-deep", "Tag-name", "no_utf8_names", "away", "warc_odd"):
            done = home.run("show", seeds[name]["id"])
            self.assertEqual(done.code, 0, str(done)[-2000:])
        for form, out in (
            ("files", "out.zip"),
            ("files", "out"),
            ("wacz", "out.wacz"),
            ("warc", "warcs"),
            ("json", "out.json"),
            ("bookmarks", "b.html"),
        ):
            with self.subTest(form):
                done = home.run("export", "--all", "--format", form, "-o", home.path / out)
                self.assertEqual(done.code, 0, str(done)[-1500:])
        done = home.run("verify", "--all")
        self.assertEqual(done.code, 0, str(done)[-1500:])

    def check_restored(self, home):
        before = self.everything(home)
        home.let_go()
        shutil.rmtree(home.data / "postgres")
        done = home.run("adopt")
        self.assertEqual(done.code, 0, str(done)[-3000:])
        now = self.everything(home)
        for id, row in before[0].items():
            with self.subTest(row[0]):
                self.assertEqual(now[0].get(id), row)
        self.assertEqual(before[1], now[1])


if __name__ == "__main__":
    unittest.main()
