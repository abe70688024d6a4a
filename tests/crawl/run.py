#!/usr/bin/env python3
"""Crawling as a whole: real workers, a real database, and a web server whose own record is what counts.

    tests/crawl/run.py --holdfast build/dev/bin/holdfast           what ctest runs, about a minute
    HOLDFAST_TEST_FULL=yes tests/crawl/run.py ...                  at full length (about half an hour)
    HOLDFAST_TEST_FULL=yes tests/crawl/run.py ... Farm             one class of it

Figures are printed, not judged; what is judged is what must be exact: limits, delays, and what is kept and removed.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from urllib.parse import unquote

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import web  # noqa: E402
from harness import postgres, suites  # noqa: E402
from harness.full import FULL, only_in_full  # noqa: E402


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


runner = load("holdfast_runner_suite", HERE.parent / "runner" / "run.py")  # collections of their own


class Collection(runner.Collection):
    settings = runner.Collection.settings | {"LEASE": "5s", "HEARTBEAT": "1s", "MARGIN": "1s", "KILL_GRACE": "200ms"}

    def __init__(self):
        super().__init__()
        shutil.rmtree(self.plugins / "note")
        self.hook("fetch", "on_Snapshot__50_fetch.sh", (HERE / "fetch.sh").read_text())
        self.archive = self.data / "archive"

    def workers(self, count, slots=4, first=0, **settings):
        return [
            self.start(
                "worker",
                HOLDFAST_WORK_DIR=str(self.path / f"work{first + n}"),
                HOLDFAST_WORKER_SNAPSHOTS=str(slots),
                **settings,
            )
            for n in range(count)
        ]

    def leave(self, processes, number=signal.SIGTERM):
        for process in processes:
            process.send_signal(number)
        for process in processes:
            process.wait(timeout=60)

    def crawl(self, *arguments):
        """The new crawl; None if all its URLs are archived already."""
        return next(
            (line["id"] for line in self.lines("add", "--bg", *map(str, arguments)) if line["type"] == "Crawl"), None
        )

    def ended(self, crawl):
        return self.sql(f"select status from holdfast.crawl where id = '{crawl}'") == "sealed"

    def wait(self, *crawls, seconds=60):
        for crawl in crawls:
            self.until(f"crawl {crawl} has ended", lambda: self.ended(crawl), seconds)

    def outcomes(self, crawl):
        """path -> outcome"""
        rows = self.sql(
            f"select regexp_replace(url, '^http://[^/]*', '') || ' ' || coalesce(outcome, status) from holdfast.v_snapshot where crawl_id = '{crawl}'"
        )
        return dict(line.split(" ") for line in rows.splitlines())

    def crawl_page(self, crawl):
        """Paths of the pages that a crawl's page names, the numbers it gives; None: there is no page."""
        file = self.archive / "crawls" / crawl / "index.html"
        if not file.exists():
            return None
        html = file.read_text()
        links = re.findall(r'href="(\.\./[^"]*)"', html)
        missing = [link for link in links if not (file.parent / unquote(link)).exists()]
        assert not missing, missing
        facts = dict(re.findall(r"<dt>(\w+)</dt><dd>([^<]*)</dd>", html))
        return (
            sorted(set(re.findall(r"[\d.]+:\d+(/\w+)<", html.partition('id="pages"')[2]))),
            facts["Pages"],
            facts["Kept"],
        )

    def directory_of(self, url):
        return self.archive / self.sql(
            f"select directory from holdfast.v_snapshot where url = '{url}' order by created_at desc limit 1"
        )


class Case(runner.Case):
    profile = Collection

    def setUp(self):
        self.web = web.Web()
        self.addCleanup(self.web.server_close)
        self.addCleanup(self.web.shutdown)
        self.c = self.collection()

    def sound(self):
        self.assertEqual(self.c.broken(), "")

    def assert_gaps(self, requests, seconds):
        """From one arrival to the next. Returns the smallest gap."""
        times = [r[0] for r in requests]
        gaps = [b - a for a, b in zip(times, times[1:])]
        self.assertTrue(gaps)
        self.assertGreaterEqual(min(gaps), seconds)
        return min(gaps)


class Robots(Case):
    def test_it_is_read_once_by_all_workers_before_any_page_and_kept_to(self):
        self.web.robots["127.0.0.1"] = (200, "User-agent: *\nDisallow: /secret\nAllow: /secret/but\nCrawl-delay: 0.3\n")
        self.c.workers(3)
        crawl = self.c.crawl(
            "--robots", *[self.web.url(p) for p in ("/a", "/b", "/c", "/secret/x", "/secret/but", "/d?secret")]
        )
        self.c.wait(crawl)
        self.assertEqual(
            self.c.outcomes(crawl),
            {
                "/a": "succeeded",
                "/b": "succeeded",
                "/c": "succeeded",
                "/d?secret": "succeeded",
                "/secret/x": "refused",
                "/secret/but": "succeeded",
            },
        )
        requests = self.web.seen()
        self.assertEqual([r[3] for r in requests].count("/robots.txt"), 1)
        self.assertEqual(requests[0][3], "/robots.txt")
        self.assertEqual(len(requests), 6)
        self.assert_gaps(requests, 0.3)
        self.assertIn(
            "robots.txt forbids it", self.c.sql("select reason from holdfast.v_snapshot where outcome = 'refused'")
        )
        self.assertEqual(
            self.c.sql("select sum(attempts) from holdfast.snapshot_sealed"), "6"
        )  # asking for robots.txt is none
        # The next crawl knows it already; one that does not care does not ask.
        again = self.c.crawl("--robots", self.web.url("/e"))
        careless = self.c.crawl(self.web.url("/secret/y", "127.0.0.2"))
        self.c.wait(again, careless)
        self.assertEqual(len(self.web.seen(path="/robots.txt")), 1)
        self.assertEqual(self.c.outcomes(careless), {"/secret/y": "succeeded"})
        self.sound()

    def test_a_long_delay_is_cut_and_none_means_all_is_allowed(self):
        self.web.robots["127.0.0.1"] = (200, "User-agent: holdfast\nCrawl-delay: 86400\n")
        self.c.workers(1, HOLDFAST_POLITENESS_ROBOTS="true", HOLDFAST_POLITENESS_ROBOTS_DELAY_MAX="200ms")
        crawl = self.c.crawl("--robots", self.web.url("/a"), self.web.url("/b"), self.web.url("/x", "127.0.0.9"))
        self.c.wait(crawl)
        self.assertEqual(set(self.c.outcomes(crawl).values()), {"succeeded"})
        self.assertEqual(self.c.sql("select robots_delay from holdfast.host where name = '127.0.0.1'"), "00:00:00.2")
        self.sound()

    def test_a_site_that_cannot_say_is_not_fetched_from(self):
        self.web.robots["127.0.0.1"] = (500, "")
        self.c.workers(1)
        crawl = self.c.crawl("--robots", self.web.url("/a"))
        self.c.until(
            "it waits",
            lambda: "robots.txt cannot be read: status 500" in self.c.sql("select state from holdfast.v_queue"),
        )
        self.assertEqual([r[3] for r in self.web.seen()], ["/robots.txt"])
        self.web.robots["127.0.0.1"] = (404, "")
        self.c.sql("update holdfast.robots set expires_at = now()")
        self.c.sql(
            "update holdfast.snapshot_queue set retry_at = now(); update holdfast.crawl_lane set next_at = now(), low_at = '-infinity';"
            "select holdfast.crawl_wake(crawl_id, now()) from holdfast.snapshot_queue"
        )
        self.c.wait(crawl)
        self.assertEqual(self.c.outcomes(crawl), {"/a": "succeeded"})
        self.sound()

    def test_where_a_page_redirects_to_is_judged_too(self):
        moved = lambda *target: (302, {"Location": self.web.url(*target)}, "")
        self.web.robots["127.0.0.1"] = self.web.robots["127.0.0.2"] = (200, "User-agent: *\nDisallow: /secret\n")
        self.web.pages.update(
            {
                "/a": moved("/fine"),
                "/b": moved("/secret/b"),
                "/c": moved("/on"),
                "/on": moved("/secret/c", "127.0.0.2"),
                "/d": moved("/open", "127.0.0.2"),
            }
        )
        said = '{"type":"ArchiveResult","status":"succeeded","output_str":"-"}'
        self.c.hook("after", "on_Snapshot__60_after.sh", f"#!/bin/sh\necho '{said}'\n")
        self.c.workers(2)
        urls = [self.web.url(p) for p in ("/a", "/b", "/c", "/d")]
        crawl = self.c.crawl("--robots", *urls)
        careless = self.c.crawl(urls[1])
        self.c.wait(crawl, careless)
        self.assertEqual(
            self.c.outcomes(crawl), {"/a": "succeeded", "/b": "refused", "/c": "refused", "/d": "succeeded"}
        )
        self.assertEqual(self.c.outcomes(careless), {"/b": "succeeded"})
        reasons = self.c.sql(
            f"select reason from holdfast.v_snapshot where crawl_id = '{crawl}' and outcome = 'refused' order by url"
        ).splitlines()
        self.assertEqual(
            reasons,
            [
                f"it redirects to {self.web.url(*target)}, which the robots.txt of that site forbids (Disallow: /secret)"
                for target in (("/secret/b",), ("/secret/c", "127.0.0.2"))
            ],
        )
        # No hook ran after that, and nothing is kept.
        self.assertEqual(
            self.c.sql(f"select count(*) from holdfast.archive_result where crawl_id = '{crawl}' and plugin = 'after'"),
            "2",
        )
        self.assertEqual(
            self.c.sql(
                f"select count(*) from holdfast.v_snapshot where crawl_id = '{crawl}' and directory is not null"
            ),
            "2",
        )
        self.assertEqual(len(self.web.seen(path="/robots.txt")), 2)  # one of each site
        self.sound()


class SlowDown(Case):
    def test_a_page_comes_back_when_its_site_may_be_asked_again(self):
        self.web.pages["/busy"] = lambda n: (429, {"Retry-After": "1"}, "") if n <= 2 else (200, {}, "page")
        self.web.pages["/never"] = (503, {"Retry-After": "1"}, "")
        self.c.workers(2, HOLDFAST_POLITENESS_RETRIES="2")
        busy, never = self.c.crawl(self.web.url("/busy")), self.c.crawl(self.web.url("/never", "127.0.0.2"))
        self.c.wait(busy, never)
        self.assertEqual(
            (self.c.outcomes(busy), self.c.outcomes(never)), ({"/busy": "succeeded"}, {"/never": "failed"})
        )
        self.assertEqual((len(self.web.seen(path="/busy")), len(self.web.seen(path="/never"))), (3, 3))
        self.assert_gaps(self.web.seen(path="/busy"), 1)
        self.assert_gaps(self.web.seen(path="/never"), 1)
        self.assertEqual(
            self.c.sql(
                "select string_agg(ending, ' ' order by fence) from holdfast.v_attempt where crawl_id = '%s'" % busy
            ),
            "released released sealed",
        )
        self.sound()


class Keeping(Case):
    def test_no_more_of_a_page_is_kept_than_its_crawl_allows(self):
        self.c.workers(1)
        crawl = self.c.crawl("--max-snapshot-bytes", "50k", self.web.url("/small"), self.web.url("/large?bytes=200000"))
        self.c.wait(crawl)
        self.assertEqual(self.c.outcomes(crawl), {"/small": "succeeded", "/large?bytes=200000": "failed"})
        self.assertFalse(list(self.c.directory_of(self.web.url("/large?bytes=200000")).glob("fetch/page.txt")))
        self.assertEqual(
            self.c.sql("select sum(output_bytes) from holdfast.archive_result where status = 'failed'"), "0"
        )
        self.sound()

    def test_files_that_share_their_bytes_are_sound_and_any_of_them_can_go(self):
        body = "page\n" + "same " * 4000
        for name in ("/one", "/two"):
            self.web.pages[name] = (200, {}, body)
        self.c.workers(1)
        crawl = self.c.crawl(self.web.url("/one"), self.web.url("/two"))
        self.c.wait(crawl)
        one, two = (self.c.directory_of(self.web.url(name)) / "fetch" / "page.txt" for name in ("/one", "/two"))
        unfinished = "/[.]a[0-9]|/[.]partial-"
        subprocess.run(["hardlink", "-q", "-t", "-s", "4096", "-x", unfinished, self.c.archive], check=True)
        self.assertEqual(one.stat().st_ino, two.stat().st_ino)
        self.c.holdfast("verify", "--all")
        removed = self.c.sql(f"select id from holdfast.snapshot where url = '{self.web.url('/one')}'")
        self.c.holdfast("remove", removed, expect=64)  # not without --yes
        self.c.holdfast("remove", "--yes", removed)
        self.assertFalse(one.exists())
        self.assertEqual(two.read_text(), body)
        self.assertEqual(
            self.c.sql(f"select snapshots_total + snapshots_succeeded from holdfast.crawl where id = '{crawl}'"), "2"
        )
        self.c.holdfast("verify", "--all")
        self.sound()

    def test_update_takes_what_failed_and_overwrite_takes_the_place_of_what_there_is(self):
        self.web.pages["/flaky"] = lambda n: (200, {}, "page") if n > 1 else (500, {}, "")
        (worker,) = self.c.workers(1)
        urls = [self.web.url("/fine"), self.web.url("/flaky")]
        first = self.c.crawl(*urls)
        self.c.wait(first)
        self.assertEqual(self.c.outcomes(first), {"/fine": "succeeded", "/flaky": "failed"})
        update = self.c.crawl("--update", *urls)
        self.c.wait(update)
        self.assertEqual(self.c.outcomes(update), {"/flaky": "succeeded"})
        self.assertIsNone(self.c.crawl("--update", *urls))
        self.assertEqual(self.c.sql("select count(*) from holdfast.crawl"), "2")
        old = [self.c.directory_of(u) for u in urls]
        overwrite = self.c.crawl("--overwrite", *urls)
        self.c.wait(overwrite)
        self.assertEqual(self.c.sql("select count(*) from holdfast.superseded"), "3")
        self.assertTrue(all(d.exists() for d in old))  # until a runner comes along
        keeper = self.c.start("runner")
        self.c.until(
            "the old ones are gone",
            lambda: (
                self.c.sql(
                    "select (select count(*) from holdfast.superseded) || ' ' || (select count(*) from holdfast.purge)"
                )
                == "0 0"
            ),
        )
        self.assertFalse(any(d.exists() for d in old))
        self.assertEqual(
            self.c.sql(
                "select count(*) || ' ' || count(distinct url) || ' ' || count(distinct crawl_id) from holdfast.snapshot"
            ),
            "2 2 1",
        )
        self.assertTrue(all(self.c.directory_of(u).exists() for u in urls))
        self.c.leave([keeper, worker])
        self.c.holdfast("verify", "--all")
        self.sound()

    def test_a_crawls_page_keeps_up_with_what_is_removed(self):
        urls = [self.web.url(p) for p in ("/one", "/two", "/three")]
        (worker,) = self.c.workers(1)
        crawl, other = self.c.crawl(*urls), self.c.crawl(self.web.url("/else"))
        self.c.wait(crawl, other)
        page = lambda of: self.c.crawl_page(of)
        waiting = lambda: self.c.sql("select count(*) from holdfast.crawl_page_stale")
        self.c.until("both pages are written", lambda: waiting() == "0")
        self.assertEqual(page(crawl)[:2], (["/one", "/three", "/two"], "3"))
        snapshot = lambda url: self.c.sql(
            f"select id from holdfast.snapshot where url = '{url}' order by created_at limit 1"
        )
        # By the verb: at once.
        self.c.holdfast("remove", "--yes", snapshot(urls[0]))
        kept = self.c.sql(f"select pg_catalog.sum(bytes) from holdfast.v_snapshot where crawl_id = '{crawl}'")
        self.assertEqual(page(crawl), (["/three", "/two"], "2", f"{int(kept) / 1024:.1f} KiB"))
        self.assertEqual(waiting(), "0")
        # Overwritten, and by SQL: by any worker that has the archive. A label is part of it too.
        overwrite = self.c.crawl("--overwrite", urls[1])
        self.c.wait(overwrite)
        self.c.sql(f"select holdfast.crawl_remove('{other}', 'ann')")
        self.c.sql(f"select holdfast.crawl_describe('{overwrite}', 'all <new>', null, '{{}}', '{{}}', 'ann')")
        keeper = self.c.start("runner")
        self.c.until("the runner has written them", lambda: waiting() == "0" and page(crawl)[:2] == (["/three"], "1"))
        self.assertIsNone(page(other))
        self.assertFalse((self.c.archive / "crawls" / other).exists())
        self.assertIn("all &lt;new&gt;", (self.c.archive / "crawls" / overwrite / "index.html").read_text())
        self.c.leave([keeper])
        # Without a runner: the next worker that looks, once it has waited for a minute.
        self.c.sql(
            f"select holdfast.snapshot_remove('{snapshot(urls[2])}', 'ann')"
        )  # the last of it, so the crawl goes too
        self.c.sql("update holdfast.crawl_page_stale set since = since - interval '2 minutes'")
        self.c.sql("update holdfast.purge set requested_at = requested_at - interval '2 minutes'")
        (another,) = self.c.workers(1, first=1)
        self.c.until("a worker has deleted it", lambda: waiting() == "0")
        self.assertIsNone(page(crawl))
        self.c.leave([worker, another])
        self.c.holdfast("verify", "--all")
        self.sound()

    def test_update_runs_only_what_failed_or_is_missing_of_a_page(self):
        allowed = self.c.path / "now"

        def plugin(name, script, **config):
            self.c.hook(name, f"on_Snapshot__60_{name}.sh", "#!/bin/sh\n" + script)
            (self.c.plugins / name / "config.json").write_text(json.dumps(config))

        good = """echo '{"type":"ArchiveResult","status":"succeeded","output_str":"done"}'\n"""
        plugin("moody", f"[ -e {allowed} ] || exit 1\n" + good)
        plugin("after", good, required_plugins=["moody"])  # ran on what a failure had left
        plugin("steady", good)
        (worker,) = self.c.workers(1)

        def update(*options):
            crawl = self.c.crawl("--update", *options, self.web.url("/a"))
            if crawl is None:
                return "", ""
            self.c.wait(crawl)
            return (
                self.c.sql(
                    f"select coalesce(string_agg(plugin || ' ' || status, ',' order by plugin), '') from holdfast.archive_result where crawl_id = '{crawl}'"
                ),
                self.c.sql(
                    f"select coalesce(outcome, '') || '|' || coalesce(reason, '') from holdfast.v_snapshot where crawl_id = '{crawl}'"
                ),
            )

        first = self.c.crawl(self.web.url("/a"))
        self.c.wait(first)
        self.assertEqual(self.c.outcomes(first), {"/a": "partial"})
        self.assertEqual(
            update(), ("after succeeded,moody failed", "partial|only what was missing; archived before: fetch, steady")
        )  # tried again, and failed again
        allowed.touch()
        self.assertEqual(update("--plugins", "fetch"), ("", ""))  # all that was asked for is there
        self.assertEqual(
            update(),
            ("after succeeded,moody succeeded", "succeeded|only what was missing; archived before: fetch, steady"),
        )
        self.assertEqual(update(), ("", ""))
        self.assertEqual(update("--max-age", "1ms")[0].count("succeeded"), 4)  # too old to count
        self.c.leave([worker])
        plugin("young", good)
        (worker,) = self.c.workers(1, first=1)
        self.assertEqual(
            update(),
            ("young succeeded", "succeeded|only what was missing; archived before: fetch, after, moody, steady"),
        )
        self.assertEqual(len(self.web.seen(path="/a")), 2)  # the page itself, only where that was asked for
        # More is wanted than the workers have.
        plugin("elsewhere", good)
        self.assertEqual(update(), ("", "refused|all that this worker can run of it is archived already"))
        everything = self.c.crawl("--overwrite", self.web.url("/a"))
        self.c.wait(everything)
        self.assertEqual(
            self.c.sql(f"select count(*) from holdfast.archive_result where crawl_id = '{everything}'"), "5"
        )
        self.c.leave([worker])
        self.c.holdfast("verify", "--all")
        self.sound()

    def test_files_are_deleted_by_a_worker_where_the_runner_does_not_see_the_archive(self):
        (worker,) = self.c.workers(1)
        crawl = self.c.crawl("--keep", "1h", self.web.url("/a"))
        self.c.wait(crawl)
        directory = self.c.directory_of(self.web.url("/a"))
        self.c.sql("update holdfast.crawl set keep_until = now() - interval '1 second'")
        keeper = self.c.start("runner", HOLDFAST_ARCHIVE_ROOT=str(self.c.path / "elsewhere"))
        self.c.until("its row is gone", lambda: self.c.sql("select count(*) from holdfast.crawl") == "0")
        self.assertTrue(directory.exists())  # marked
        self.assertEqual(self.c.sql("select count(*) from holdfast.v_purge"), "1")
        self.c.sql("update holdfast.purge set requested_at = requested_at - interval '2 minutes'")
        (another,) = self.c.workers(1, first=1)
        self.c.until("its files are gone", lambda: self.c.sql("select count(*) from holdfast.v_purge") == "0")
        self.assertFalse(directory.exists())
        self.c.leave([keeper, worker, another])
        self.sound()


class Workers(Case):
    def test_each_kind_does_its_own_and_knows_who_started_it(self):
        crawls = [self.c.crawl(self.web.url(f"/{n}"), self.web.url(f"/{n}/b")) for n in range(3)]
        run = self.c.start(
            "run",
            "--set",
            "runner.split_workers=true",
            "--set",
            "runner.max_workers_per_type=2",
            "--set",
            "worker.snapshots=1",
        )
        self.assertEqual(run.wait(timeout=90), 0)
        self.assertTrue(all(self.c.ended(crawl) for crawl in crawls))
        kinds = dict(
            line.split(" ")
            for line in self.c.sql(
                "select worker_type || ' ' || count(*) from holdfast.process where process_type = 'worker' group by worker_type"
            ).splitlines()
        )
        self.assertEqual(kinds["crawl"], "1")
        self.assertIn(kinds["snapshot"], ("1", "2"))
        named = "label = format('%s on %s pid %s', process_type, hostname, pid)"
        self.assertEqual(self.c.sql(f"select bool_and({named}) from holdfast.v_worker"), "t")
        self.assertEqual(
            self.c.sql(
                "select count(*) from holdfast.process w join holdfast.process r on r.id = w.parent_id and r.process_type = 'runner' "
                "where w.process_type = 'worker'"
            ),
            str(sum(map(int, kinds.values()))),
        )
        self.assertEqual(
            self.c.sql(
                "select string_agg(distinct p.worker_type, ',') from holdfast.v_attempt a join holdfast.process p on p.id = a.process_id"
            ),
            "snapshot",
        )
        self.sound()

    def test_the_order_of_claims_is_a_setting(self):
        crawl = self.c.crawl(*[self.web.url(f"/{n:02}") for n in range(20)])
        for order, settings in (
            ("newest", {"HOLDFAST_CLAIM_ORDER": "newest"}),
            ("random", {"HOLDFAST_CLAIM_FROM_TOP_N": "100"}),
        ):
            with self.subTest(order):
                crawl = self.c.crawl(*[self.web.url(f"/{order}/{n:02}") for n in range(20)])
                (worker,) = self.c.workers(1, slots=1, **settings)
                self.c.wait(crawl)
                self.c.leave([worker])
                taken = [r[3] for r in self.web.seen(path=f"/{order}/.*")]
                self.assertEqual(len(taken), 20)
                if order == "newest":
                    self.assertEqual(taken, sorted(taken, reverse=True))
                else:
                    self.assertNotEqual(taken, sorted(taken))
        self.sound()


class Limits(Case):
    def test_they_are_exact_on_four_workers(self):
        cap = 1500 if FULL else 60
        links = 40
        self.c.workers(4)
        pages = self.c.crawl("--depth", 3, "--max-urls", cap, self.web.url(f"/farm/0?links={links}", "127.0.1.1"))
        size = 4000
        seeds = [self.web.url(f"/p{n}?bytes={size}", "127.0.1.2") for n in range(cap)]
        body = self.c.crawl("--max-bytes", cap * size // 3, *seeds)
        parallel = self.c.crawl(
            "--max-parallel", 3, *[self.web.url(f"/s{n}?seconds=0.3", "127.0.1.3") for n in range(cap // 3)]
        )
        # Wall time: more pages than it can be enough for.
        clock = self.c.crawl(
            "--max-time",
            "10s" if FULL else "2s",
            *[self.web.url(f"/t{n}?seconds=0.5", "127.0.1.4") for n in range(cap)],
        )
        self.c.wait(pages, body, parallel, clock, seconds=900)
        self.assertEqual(
            self.c.sql(f"select snapshots_total || ' ' || stop_reason from holdfast.crawl where id = '{pages}'"),
            f"{cap} max_urls",
        )
        fetched = self.web.seen("127.0.1.1")
        self.assertEqual((len(fetched), len({r[3] for r in fetched})), (cap, cap))
        kept = int(self.c.sql(f"select bytes from holdfast.crawl where id = '{body}'"))
        self.assertLessEqual(kept, cap * size // 3)
        self.assertGreater(kept, 0)

        def on_disk():
            return sum(p.stat().st_size for p in self.c.archive.glob("*/*/127.0.1.2*/*/a*/**/*") if p.is_file())

        self.c.until("what went beyond is deleted", lambda: on_disk() == kept)
        at_once = peak(self.web.seen("127.0.1.3"))
        self.assertIn(at_once, (2, 3))  # never more; that three overlap is up to the machine
        late, left, latest = self.c.sql(
            f"""select count(a.*) filter (where a.claimed_at > c.deadline_at), (select count(*) from holdfast.v_snapshot where crawl_id = c.id and outcome = 'cancelled') > 0,
            extract(epoch from max(c.deadline_at)) from holdfast.crawl c join holdfast.v_attempt a on a.crawl_id = c.id where c.id = '{clock}' and c.stop_reason = 'max_time' group by c.id"""
        ).split("|")
        self.assertEqual((late, left), ("0", "t"))
        asked = self.web.seen("127.0.1.4")
        print(
            f"max_time: {len(asked)} pages asked for, the last {asked[-1][0] - float(latest):+.3f} s from the deadline; the last claim was before it"
        )
        print(
            f"max_urls {cap}: {len(fetched)} pages fetched; max_bytes {cap * size // 3}: {kept} kept, {on_disk()} on disk; parallel 3: {at_once} at once at most"
        )
        self.sound()

    def test_a_hosts_delay_holds_in_its_own_log_whatever_happens(self):
        # Two hosts, two crawls each, four workers; then, twice, kill -9 of all workers and an immediate stop of
        # the server.
        pages, delay = (150, 0.25) if FULL else (12, 0.15)
        hosts = ["127.0.2.1", "127.0.2.2"]
        for host in hosts:
            # One at a time, so that the site's own log shows the delay: from the end of a page to the next start.
            self.c.holdfast("host", "set", host, "--delay", f"{int(delay * 1000)}ms", "--parallel", "1")
        workers = self.c.workers(4)
        crawls = [
            self.c.crawl(*[self.web.url(f"/{n}/{i}", host) for i in range(pages)]) for host in hosts for n in range(2)
        ]
        total = 2 * pages
        for share in (0.3, 0.6):
            self.c.until("some pages are fetched", lambda: len(self.web.seen(hosts[0])) >= share * total, seconds=600)
            self.c.leave(workers, signal.SIGKILL)
            runner.Collection.server.crash()
            workers = self.c.workers(4)
        self.c.wait(*crawls, seconds=600)
        for host in hosts:
            requests = self.web.seen(host)
            self.assertEqual(len({r[3] for r in requests}), total)
            smallest = self.assert_gaps(requests, delay)
            times = [r[0] for r in requests]
            usual = statistics.median(b - a for a, b in zip(times, times[1:]))
            print(
                f"{host}: delay {delay * 1000:.0f} ms; {len(requests)} requests by 4 workers, smallest gap {smallest * 1000:.1f} ms, median {usual * 1000:.1f} ms"
            )
        self.sound()


class Commands(Case):
    """Commands of every kind to real workers at work, some of which are killed meanwhile."""

    def hooks(self, target):
        """Processes of hooks at work on it, wherever they hang."""
        kind, name = target
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                if f"{self.c.path}/plugins/fetch" not in command:
                    continue
                if kind != "worker" or os.readlink(entry / "cwd").startswith(f"{self.c.path}/work{self.place[name]}/"):
                    found += [int(entry.name)] * {
                        "all": True,
                        "worker": True,
                        "crawl": f"/{name}/" in command,
                        "host": f"//{name}:" in command,
                        "snapshot": f"--url={name}\0" in command,
                    }[kind]
            except OSError:
                pass  # it has ended
        return found

    def claimed(self, target, after, before=None):
        """Attempts at it that began in between."""
        kind, name = target
        of = {
            "all": "true",
            "worker": f"a.process_id::text = '{name}'",
            "crawl": f"s.url like '%/{name}/%'",
            "host": f"s.host = '{name}'",
            "snapshot": f"s.url = '{name}'",
        }[kind]
        until = f"and a.claimed_at < to_timestamp({before})" if before else ""
        return self.c.sql(
            f"""select count(*) from (select snapshot_id, crawl_id, process_id, claimed_at from holdfast.v_attempt union all
            select snapshot_id, crawl_id, owner_id, claimed_at from holdfast.snapshot_queue where owner_id is not null) a
            join holdfast.snapshot s on s.id = a.snapshot_id and s.crawl_id = a.crawl_id where {of} and a.claimed_at > to_timestamp({after}) {until}"""
        )

    def begun_later(self):
        """The time from which on every claim has seen what is in the database now: none under way began before."""
        older = f"application_name like 'holdfast worker%' and xact_start < to_timestamp({time.time()})"
        under_way = lambda: self.c.sql(f"select count(*) from pg_stat_activity where {older}")
        self.c.until("claims that were under way have ended", lambda: under_way() == "0")
        return time.time()

    def start_worker(self, place):
        (self.pids[place],) = self.c.workers(1, first=place)

    def worker(self, place):
        """pid of the worker itself, which its guard has started."""
        guard = self.pids[place].pid
        children = pathlib.Path(f"/proc/{guard}/task/{guard}/children")
        return int(self.c.until("a worker has started", lambda: children.read_text().split())[0])

    def identity(self, place):
        joined = lambda: self.c.sql(
            f"select id from holdfast.process where pid = {self.worker(place)} and process_type = 'worker' and status = 'running' and lease_until > now()"
        )
        return self.c.until("a worker has joined", joined)

    def kill_one(self, dice):
        place = dice.choice(list(self.pids))
        if self.pids[place].poll() is None:  # else it was told to end, and has
            with contextlib.suppress(OSError):
                os.kill(self.worker(place), signal.SIGKILL)
        self.pids[place].wait(timeout=60)
        self.start_worker(place)
        return place

    def test_what_is_forbidden_does_not_begin_and_what_runs_ends(self):
        rounds = 80 if FULL else 9
        dice = random.Random(7)
        hosts = [f"127.0.9.{n}" for n in range(1, 5)]
        self.pids, self.place, self.crawls, crawls_made, cancelled = {}, {}, {}, 0, 0
        took = {}
        for place in range(4):
            self.start_worker(place)
        pairs = [
            (kind, action)
            for kind in ("crawl", "snapshot", "host", "worker", "all")
            for action in ("pause", "cancel")
            if (kind, action) != ("all", "cancel")
        ]
        for number in range(rounds):
            while (
                int(self.c.sql("select count(*) from holdfast.v_crawl where status <> 'sealed'")) < 4
                or int(self.c.sql("select count(*) from holdfast.snapshot_queue")) < 60
            ):
                crawls_made += 1
                name = f"c{crawls_made}"
                self.crawls[name] = self.c.crawl(
                    *[self.web.url(f"/{name}/{n}?seconds=1", hosts[n % 4]) for n in range(40)]
                )
            self.c.until("something runs", lambda: self.c.sql("select count(*) > 0 from holdfast.v_running") == "t")
            kind, action = pairs[number % len(pairs)]
            at_work = [
                line.split("|")
                for line in self.c.sql(
                    "select url, crawl_id, snapshot_id from holdfast.v_running limit 20"
                ).splitlines()
            ]
            if kind in ("crawl", "snapshot") and not at_work:
                continue
            if kind == "crawl":
                name = re.search(r"/(c\d+)/", dice.choice(at_work)[0])[1]
                order = [self.crawls[name]]
            elif kind == "snapshot":
                name, _, snapshot = dice.choice(at_work)
                order = [snapshot]
            elif kind == "host":
                name = dice.choice(hosts)
                order = ["--host", name]
            elif kind == "worker":
                place = dice.choice(list(self.pids))
                name = self.identity(place)
                self.place[name] = place
                order = ["--worker", name]
            else:
                name, order = "", ["--all"]
            target = (kind, name)
            self.c.holdfast(
                action,
                *order,
                *(["--yes"] if action == "cancel" else []),
                expect=None if kind in ("snapshot", "crawl") else 0,
            )
            given = self.begun_later()
            killed = (
                self.kill_one(dice) if dice.random() < 0.3 else None
            )  # its work is others' now, but not what they must not have
            self.c.until(
                f"no hook runs on {kind} {name}",
                lambda: not self.hooks(target) or action == "cancel" and kind == "host",
                seconds=60,
            )
            # Beside a kill it is mostly the time until the killed one is gone and another has been started.
            took.setdefault(action if killed is None else f"{action}, a worker killed meanwhile", []).append(
                time.time() - given
            )
            time.sleep(0.2)  # in which something could begin
            if action == "cancel":
                cancelled += 1
                if kind == "worker" and killed != self.place[name]:
                    self.pids[self.place[name]].wait(timeout=60)
                    self.start_worker(self.place[name])
                if kind != "host":  # of a host only what was there is cancelled
                    self.assertEqual(self.claimed(target, given), "0", f"after {action} of {kind} {name}")
            else:
                self.assertEqual(self.claimed(target, given, time.time()), "0", f"while {kind} {name} was paused")
                self.c.holdfast(
                    "resume", *order, expect=None if kind in ("worker", "snapshot", "crawl") else 0
                )  # it may have ended meanwhile
        self.c.wait(*self.crawls.values(), seconds=900)
        outcomes = dict(
            line.split("|")
            for line in self.c.sql("select outcome, count(*) from holdfast.v_snapshot group by 1").splitlines()
        )
        self.assertEqual(set(outcomes) - {"succeeded", "cancelled", "quarantined"}, set(), outcomes)
        for action, seconds in sorted(took.items()):
            print(
                f"{action}: {len(seconds)} commands; until no hook ran on what it was given to: median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s"
            )
        print(
            f"{crawls_made} crawls; " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        )
        self.sound()


class Fair(Case):
    def test_two_hundred_crawls_one_of_them_a_giant(self):
        giant_pages, small, pages = (200_000, 199, 5) if FULL else (3_000, 15, 3)

        def race(name):
            began = time.time()
            crawls = [
                self.c.crawl(
                    *[self.web.url(f"/{name}/{n}/{i}", f"127.0.{4 + n // 250}.{1 + n % 250}") for i in range(pages)]
                )
                for n in range(small)
            ]
            added = time.time() - began
            self.c.until(
                "every small crawl has ended",
                lambda: (
                    self.c.sql("select count(*) from holdfast.crawl where status <> 'sealed' and label <> 'giant'")
                    == "0"
                ),
                seconds=1800,
            )
            of = ", ".join(f"'{c}'" for c in crawls)
            first = "(select min(a.claimed_at) from holdfast.v_attempt a where a.crawl_id = c.id)"
            waits = sorted(
                float(x)
                for x in self.c.sql(
                    f"select extract(epoch from {first} - c.created_at) from holdfast.crawl c where id in ({of})"
                ).splitlines()
            )
            ends = sorted(
                float(x)
                for x in self.c.sql(
                    f"select extract(epoch from sealed_at - created_at) from holdfast.crawl where id in ({of})"
                ).splitlines()
            )
            print(
                f"{name}: {small} crawls of {pages} pages added within {added:.1f} s; to the first claim: median {statistics.median(waits):.3f} s, "
                f"worst {waits[-1]:.3f} s; to the end: median {statistics.median(ends):.3f} s, worst {ends[-1]:.3f} s"
            )

        self.c.workers(4)
        race("alone")
        (self.c.path / "giant.txt").write_text(
            "\n".join(self.web.url(f"/giant/{n}", "127.0.3.1") for n in range(giant_pages))
        )
        giant = self.c.crawl("--max-urls", 0, "--label", "giant", self.c.path / "giant.txt")
        self.c.until(
            "the giant is all in the queue",
            lambda: self.c.sql(f"select seeds_left from holdfast.crawl where id = '{giant}'") == "0",
            seconds=600,
        )
        before = len(self.web.seen("127.0.3.1"))
        began = time.time()
        race("beside a giant")
        took = time.time() - began
        print(
            f"meanwhile the giant of {giant_pages} pages had {len(self.web.seen('127.0.3.1')) - before} fetched in {took:.1f} s"
        )
        self.assertFalse(self.c.ended(giant) and FULL)
        self.assertEqual(self.c.start("cancel", giant).wait(timeout=900), 0)
        self.c.wait(giant, seconds=60)
        self.sound()


class Farm(Case):
    PROBE = """create function probe(worker uuid) returns double precision language plpgsql as $$
declare
  v_from timestamptz := clock_timestamp();
begin
  begin
    perform from holdfast.worker_turn(worker, '[]', 4, '{}', false, false, 0, 0);
    raise exception 'undo' using errcode = 'ZZ000';
  exception when sqlstate 'ZZ000' then
    return extract(epoch from clock_timestamp() - v_from) * 1000;
  end;
end $$"""

    @only_in_full
    def test_it_stays_bounded_and_claims_stay_quick(self):
        cap = 200_000
        self.c.sql(self.PROBE)
        worker = "a0000000-0000-7000-8000-00000000000f"
        self.c.sql(
            f"""select holdfast.process_join('{worker}', '{{"machine": {{"id": "m", "hostname": "h"}}, "boot_id": "b",
                "pid": 1, "start_ticks": 1, "process_type": "worker", "worker_type": "snapshot", "label": "probe",
                "version": "1", "slots": 8}}', interval '1 hour')"""
        )
        self.c.workers(4)
        crawl = self.c.crawl("--depth", 4, "--max-urls", cap, self.web.url("/farm/0"))
        samples = []
        deadline = time.time() + 1800
        full_at = None
        while time.time() < deadline:
            open_now, total = map(
                int,
                self.c.sql(
                    f"select snapshots_open || ' ' || snapshots_total from holdfast.crawl where id = '{crawl}'"
                ).split(),
            )
            samples.append((total, float(self.c.sql(f"select probe('{worker}')"))))
            self.assertLessEqual(total, cap)
            if total == cap:
                full_at = full_at or time.time()
                if time.time() - full_at > 90:
                    break
            time.sleep(0.2)
        self.assertEqual(total, cap)
        self.assertEqual(self.c.sql(f"select stop_reason from holdfast.crawl where id = '{crawl}'"), "max_urls")
        usual = []
        steps = [0, cap // 20, cap // 4, cap // 2, cap - 1, cap]
        for low, high in zip(steps, steps[1:]):
            part = [ms for n, ms in samples if low < n <= high]
            if part:
                usual.append(statistics.median(part))
                print(
                    f"{low} to {high} pages known: a claim of four took {statistics.median(part):.1f} ms (median of {len(part)}, worst {max(part):.1f})"
                )
        print(f"a claim with all known took {usual[-1] / usual[0]:.2f} times what it took at first")
        fetched = len(self.web.seen())
        print(f"{fetched} pages fetched, which linked {fetched * 1000}; {total} known, cap {cap}")
        self.assertEqual(self.c.start("cancel", crawl).wait(timeout=900), 0)
        self.c.wait(crawl, seconds=60)
        self.assertEqual(self.c.sql(f"select count(*) from holdfast.snapshot where crawl_id = '{crawl}'"), str(cap))
        self.sound()


def peak(requests):
    """The most requests under way at once."""
    moments = sorted([(r[0], 1) for r in requests] + [(r[1], -1) for r in requests])
    now = most = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    return most


def main():
    arguments = suites.read(suites.parser(__doc__).parse_args())
    # As a server of one's own would be: it survives being stopped at once.
    with postgres.Server(fsync="on", max_connections=200) as runner.Collection.server:
        return suites.run(arguments, sys.modules[__name__])


if __name__ == "__main__":
    sys.exit(suites.without_server() or main())
