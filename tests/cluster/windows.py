"""Faults at exact places: a process is killed, stopped or robbed of an answer just there, by HOLDFAST_TEST_POINT."""

import contextlib
import os
import signal

import stage
from harness.wait import Failure, until
from harness.worker import process_table

# Every step between claim and seal, and of turning seeds into snapshots.
KILL_POINTS = [
    "after_crawl_claim",
    "before_expand",
    "after_expand",
    "after_claim",
    "after_start",
    "after_hook",
    "after_scan",
    "after_publish",
    "before_seal",
    "after_seal",
]
ANSWER_POINTS = ["after_crawl_claim", "after_expand", "after_claim", "after_seal"]
STOP_POINTS = ["after_hook", "after_publish", "before_seal"]


def settle(place, what, seconds=60):
    place.wait_until_sealed(seconds)
    place.leave()
    problems = place.check()
    if problems:
        place.keep = place.keep is not None
        raise Failure(f"{what}:\n" + "\n".join("  " + problem for problem in problems[:20]))


def some_urls(count, tenths, children):
    urls = [f"http://h{number % 3}.test/page/{tenths}/{children}/{number}" for number in range(count)]
    return urls, {url for number in range(count) for url in stage.leaf_urls(number, children, 1)}


class Shared:
    """One server and two workers for many faults in turn: each has a crawl of its own, and the proof follows each."""

    def __init__(self, holdfast, keep):
        self.holdfast, self.keep, self.place = holdfast, keep, None

    @contextlib.contextmanager
    def two_workers(self, point=None, tenths=0, count=8, children=2, slots=2, extra=None):
        """The first worker meets the fault, the second takes over."""
        if not self.place:
            self.place = stage.Stage(self.holdfast, workers=2, slots=slots, keep=self.keep)
        place, self.place = self.place, None
        try:
            place.slots, place.extra = slots, extra or {}
            for worker in place.workers:
                worker.proxy.set("pass")
                worker.log_path.write_text("")
                worker.extra, worker.process = {}, None
            place.workers[0].extra = {"HOLDFAST_TEST_POINT": point} if point else {}
            urls, found = some_urls(count, tenths, children)
            # With a scope, a crawl however small is expanded by itself, not by the claim of its snapshots.
            by_itself = "expand" in (point or "") or "crawl_claim" in (point or "")
            place.add(urls, depth=1, children=found, options=["--deny", "nowhere.test"] if by_itself else [])
            place.begin()
            yield place
        except BaseException:
            place.close()
            raise
        self.place = place

    def close(self):
        if self.place:
            self.place.close()
            self.place = None


def ended(worker):
    return worker.process.poll() is not None


def killed_at(shared, point):
    with shared.two_workers(f"kill:{point}:1") as place:
        worker = place.workers[0]
        worker.expected_end = True
        worker.start()
        until(f"the worker is killed {point}", lambda: ended(worker), 30)
        worker.extra = {}
        place.start()
        settle(place, f"killed {point}")


def answer_lost_at(shared, point):
    with shared.two_workers(",".join(f"fail:{point}:{number}" for number in (1, 2, 4))) as place:
        place.workers[0].start()  # alone: it must get over it by itself
        settle(place, f"answer lost {point}")
        if (
            place.postgres.value(
                f"select count(*) from holdfast.process where exit_reason in ('lease lapsed', 'lost trust') and started_at > {place.since}"
            )
            != "0"
        ):
            raise Failure(f"answer lost {point}: the worker gave up instead of asking again")


def stopped(worker):
    pid = worker.pid()
    return pid if pid and process_table().get(pid, (0, ""))[1] == "T" else None


def stopped_at(shared, point, action="stop", cut_off=False):
    """Stopped until its work is done by another, then continued: nothing of what it still does may count."""
    with shared.two_workers(f"{action}:{point}:1") as place:
        worker, other = place.workers
        worker.start()
        pid = until(f"the worker stops {point}", lambda: stopped(worker), 30)
        place.stopped.add(worker.identity(pid))
        if cut_off:
            worker.proxy.set("refuse")
        other.start()
        place.wait_until_sealed(60)
        os.kill(pid, signal.SIGCONT)
        if cut_off:
            until("the worker has given up", lambda: "dropped" in worker.log_path.read_text(errors="replace"), 30)
            worker.proxy.set("pass")
        else:
            until(
                "the worker has heard that it is no longer counted on",
                lambda: "the lease may have expired, killing" in worker.log_path.read_text(errors="replace"),
                30,
            )
        worker.extra = {}
        settle(place, f"{action} {point}")


def main_thread_hangs(shared):
    """The heartbeats go on, the main thread does not: the watchdog must end the process, and with it its hooks."""
    with shared.two_workers("hang:take_heartbeat:6", tenths=40, count=2) as place:
        worker, other = place.workers
        worker.start()
        until("the worker ends itself", lambda: ended(worker), 30)
        if worker.process.returncode != 75:
            raise Failure(f"a hanging worker ended with status {worker.process.returncode}")
        worker.extra, worker.expected_end = {}, True
        place.start()
        settle(place, "main thread hangs", 90)


def cut_off(shared, extra=None):
    """A worker behind a dead network has a long hook running: the hook must be gone before another worker runs it again."""
    with shared.two_workers(tenths=70, count=2, slots=2, extra=extra) as place:
        worker, other = place.workers
        worker.start()
        until("its hooks run", lambda: sum(1 for _ in place.runs(True)) > 4, 30)
        worker.proxy.set("swallow")
        other.start()
        until("the other worker has taken over", lambda: any(fence > 1 for _, _, fence in place.runs(True)), 30)
        worker.proxy.set("pass")
        settle(place, "cut off", 90)


def leaves_cut_off(shared):
    """Asked to leave while the network is dead, a worker ends: it waits for no answer without a deadline."""
    with shared.two_workers(tenths=3) as place:
        place.start()
        until(
            "both are known",
            lambda: (
                place.postgres.value(
                    "select count(*) from holdfast.process where status = 'running' and heartbeat_at > started_at"
                )
                == "2"
            ),
            30,
        )
        worker = place.workers[0]
        worker.proxy.set("swallow")
        worker.leave()
        until("the worker ends", lambda: ended(worker), 60)
        worker.process = None
        settle(place, "leaves cut off", 60)


def too_many_connections(shared):
    """53300 is waited out, with pauses between the tries."""
    with shared.two_workers(tenths=3) as place:
        place.start()
        said = lambda words: all(words in worker.log_path.read_text() for worker in place.workers)
        until("hooks run, and both workers are there", lambda: place.trace.read_text() and said("joined as"), 30)
        place.postgres.rows("alter database holdfast connection limit 0", "postgres")
        place.postgres.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'holdfast worker%'",
            "postgres",
        )
        until("both workers are refused", lambda: said("too many connections"), 30)
        place.postgres.rows("alter database holdfast connection limit -1", "postgres")
        starts = [worker.starts for worker in place.workers]
        settle(place, "too many connections", 60)
        if [worker.starts for worker in place.workers] != starts:
            raise Failure("too many connections: a worker ended")


def capped(shared, broken=False):
    """Pages that find many URLs seal at once: the cap of their crawl holds in every order."""
    with contextlib.closing(stage.Stage(shared.holdfast, workers=3, slots=4, keep=shared.keep)) as place:
        if broken:
            break_crawl_lock(place)
        for _ in range(3):
            pages = range(0, 24, 2)  # even: no URL is found twice, which would fail by itself without the lock
            place.add(
                [f"http://capped.test/page/0/8/{number}" for number in pages],
                depth=1,
                max_urls=40,
                children={url for number in pages for url in stage.leaf_urls(number, 8, 1)},
            )
        place.start()
        settle(place, "capped", 60)


# Guards broken on purpose -----


def change_function(place, name, *changes):
    """Replaces a function of the schema by one with other words in it (the first occurrence of each)."""
    steps = "".join(
        f"""
      if position($old${old}$old$ in t) = 0 then raise exception '{name} no longer contains: %', $old${old}$old$; end if;
      t := overlay(t placing $new${new}$new$ from position($old${old}$old$ in t) for length($old${old}$old$));"""
        for old, new in changes
    )
    try:
        place.postgres.rows(
            f"do $do$ declare t text := pg_get_functiondef('holdfast.{name}'::regproc); begin {steps} execute t; end $do$"
        )
    except Failure as failure:
        raise RuntimeError(f"the guard could not be taken away: {failure}") from failure  # not to be taken for a notice


def break_crawl_lock(place):
    # The second guard: it refuses what is too much, and the turn is repeated.
    place.postgres.rows("alter table holdfast.crawl drop constraint crawl_urls_within_limit")
    # Without the lock, what the crawl has is read before others have written: the pause makes sure of it.
    change_function(
        place,
        "snapshots_add",
        ("FUNCTION holdfast.snapshots_add(", "FUNCTION public.test_add("),
        ("from holdfast.crawl where id = p_crawl;", "from holdfast.crawl where id = p_crawl; perform pg_sleep(0.5);"),
    )
    change_function(place, "follow_links", ("holdfast.snapshots_add(", "public.test_add("))
    change_function(
        place,
        "lock_for",
        ("order by id\n    for no key update;", "order by id;"),
        # Taken for the sake of the order of locks; by itself it would do here.
        ("order by c.crawl_id\n    for no key update;", "order by c.crawl_id;"),
    )


def break_fence(shared):
    """A seal is long under way: it arrives when its worker is no more and another has the page."""
    with shared.two_workers() as place:
        worker, other = place.workers
        worker.start()
        place.wait_until_sealed(60)  # its sessions know the statement of a turn by now: one message is all of a seal
        change_function(
            place, "judge_pages", ("where q.fence = p.fence and q.owner_id = p_owner", "where q.owner_id is not null")
        )
        change_function(place, "seal_pages", ("and q.fence = p.fence", ""))
        # A turn of a worker that has lapsed is refused as a whole, too.
        change_function(
            place,
            "worker_may_claim",
            ("raise exception 'worker % has lapsed', p_worker using errcode = 'HF002';", "return false;"),
        )
        place.begin()
        place.add(some_urls(1, 10, 0)[0])
        try:
            until("its hook runs", lambda: any(place.runs(True)), 30)
            worker.proxy.set("hold")
            other.extra = {"HOLDFAST_TEST_POINT": "stop:before_seal:1"}
            other.start()
            pid = until("the other worker stops before its seal", lambda: stopped(other), 30)
            worker.proxy.set("pass")
            until(
                "the seal has arrived",
                lambda: (
                    place.postgres.value(
                        f"select count(*) from holdfast.snapshot_sealed where sealed_at > {place.since}"
                    )
                    == "1"
                ),
                15,
            )
        except Failure as failure:
            raise RuntimeError("the stage could not be set") from failure  # not to be taken for a notice
        place.stopped.add(other.identity(pid))
        os.kill(pid, signal.SIGCONT)
        other.extra = {}
        settle(place, "no fence check")


BREAKS = {
    "fence": break_fence,
    "self-fencing": lambda shared: cut_off(shared, {"HOLDFAST_TEST_NO_SELF_FENCING": "1"}),
    "crawl-lock": lambda shared: capped(shared, broken=True),
}


def scenarios(step, first):
    """Of points that are alike each `step`th, beginning with that one."""
    some = lambda points: points[first % min(step, len(points)) :: step]
    for point in some(KILL_POINTS):
        yield f"killed {point}", lambda shared, p=point: killed_at(shared, p)
    for point in some(ANSWER_POINTS):
        yield f"answer lost {point}", lambda shared, p=point: answer_lost_at(shared, p)
    for point in some(STOP_POINTS):
        yield f"stopped {point} until others did its work", lambda shared, p=point: stopped_at(shared, p)
    yield (
        "sealed, the answer lost, then cut off",
        lambda shared: stopped_at(shared, "after_seal", "stop-fail", cut_off=True),
    )
    yield "the main thread hangs", main_thread_hangs
    yield "cut off with a long hook", cut_off
    yield "asked to leave behind a dead network", leaves_cut_off
    yield "too many connections", too_many_connections
    yield "a cap under many seals", capped
