#!/usr/bin/env python3
"""Takes each guard of the SQL functions away once: the named races must then come out differently.

  guards.py                 all guards
  guards.py WORD...         those whose function or text has one of these words

Prints a table. Exit status: 0 each removal is noticed, 1 not, 77 isolationtester is not installed.
"""

import subprocess
import sys

from run import HERE, SKIPPED, Races, find_tester, postgres

# Function, what is taken out, what stands there then, races that notice it.
GUARDS = [
    # Fences and owners.
    ("judge_pages", "q.fence = p.fence and q.owner_id = p_owner", "q.owner_id = p_owner", "stale_fence finish_repeat"),
    ("judge_pages", "q.fence = p.fence and q.owner_id = p_owner", "q.fence = p.fence", "stale_fence finish_repeat"),
    ("claim_take", "greatest(q.fence, v_floor) + 1", "greatest(q.fence, 1)", "claim_lapse stale_fence"),
    ("worker_hooks", "where o.fence <= excluded.fence", "", "hooks_fence"),
    ("crawl_expand", "or v_crawl.fence <> p_fence", "", "expand_expand expand_lapse"),
    (
        "binary_set",
        "v_row.fence is distinct from p_fence or v_row.owner_id is distinct from p_worker",
        "false",
        "binary_claim",
    ),
    ("webhook_report", "and d.fence = p_fence", "", "webhook_claim"),
    # Locks.
    ("claim_due", "for update skip locked", "", "claim_waits commands_claim cancel_finish"),
    ("claim_pick", "for update skip locked", "", "commands_claim"),
    ("claim_lanes", "for update skip locked;", ";", "claim_rollback"),
    (
        "claim_lanes",
        "where h.name = v_lane.host for update skip locked",
        "where h.name = v_lane.host",
        "host_claim host_delay",
    ),
    ("crawl_room", "for update skip locked", "", "max_parallel"),
    (
        "lock_for",
        "from holdfast.crawl\n    where id = any (p_crawls)\n    order by id\n    for no key update",
        "from holdfast.crawl",
        "max_bytes expand_lapse cancel_finish commands_finish remove_finish",
    ),
    ("worker_may_claim", "for key share of p", "", "claim_in_flight_lapse leave_claim"),
    ("worker_turn", "for key share", "", "turn_leave turn_lapse"),
    ("lapse_workers", "for update skip locked", "", "heartbeat_lapse lapse_lapse claim_in_flight_lapse"),
    ("worker_leave", "for update", "", "leave_claim"),
    ("worker_hooks", "for key share", "", "hooks_lapse"),
    ("session_open", "for key share", "", "session_lapse"),
    ("crawl_expand", "for no key update", "", "expand_expand expand_lapse"),
    ("crawl_claim", "for update skip locked", "", "crawl_claim"),
    ("crawl_open_small", "for no key update skip locked", "", "claim_opens"),
    ("binary_claim", "for update of d skip locked", "", "binary_claim"),
    ("runner_maintenance", "for key share", "", "gate_maintenance_takeover gate_hold_heartbeat"),
    ("claim", "if not p_finished then", "if true then", "turn_lapse"),
    ("claim_round", "SET lock_timeout TO '50ms'", "", "claim_waits"),
    # Leases and commands.
    ("lapse_workers", "lease_until <= clock_timestamp()", "true", "claim_lapse heartbeat_lapse"),
    ("worker_may_claim", "and p.lease_until > clock_timestamp()", "", "claim_lapse heartbeat_lapse"),
    ("worker_heartbeat", "where id = p_worker and status = 'running'", "where id = p_worker", "heartbeat_lapse"),
    ("worker_heartbeat", "perform holdfast.control_apply(p_worker);", "", "commands_claim pause_claim"),
    ("worker_heartbeat", "not (h.snapshot_id = any (p_snapshots))", "false", "heartbeat_extra"),
    ("worker_heartbeat", "q where q.owner_id = p_worker)", "q)", "pause_claim"),
    ("worker_heartbeat", "and h.fence = b.fence", "", "heartbeat_extra"),
    # Quarantine, seals, limits.
    ("judge_released", "v_now.lapses >= v_now.max_lapses", "false", "lapse_lapse quarantine_finish"),
    ("release_pages", "q.lapses + p.lapsed::integer", "q.lapses", "lapse_lapse finish_lapse"),
    ("crawl_settle", "and c.snapshots_open = 0", "", "commands_finish expand_expand cancel_finish finish_finish"),
    (
        "snapshots_add",
        "not exists (select from same s where s.url_hash = w.url_hash and s.crawl_id = p_crawl)",
        "true",
        "finish_links_twice",
    ),
    ("snapshots_add", "r.rank <= v_crawl.max_urls - v_crawl.snapshots_total", "true", "max_urls"),
    ("claim_lane", "v_limits.cap - count(*)", "v_limits.cap", "host_claim"),
    ("claim_lane", "if v_next > v_now then", "if false then", "host_delay"),
    ("claim_park", "and c.wakes = p_wakes", "", "finish_links_park release_park"),
    ("lane_open", ", low_at = least(l.low_at, excluded.next_at)", "", "release_low_at"),
    ("lane_open", "next_at = least(l.next_at, excluded.next_at)", "next_at = l.next_at", "release_park claim_lapse"),
    # Personas and sign-ins.
    ("persona_save", "and version = p_version", "", "persona_save"),
    ("persona_save", "signed_out_at = case when not p_signed_in then signed_out_at end,", "", "persona_signed_out"),
    ("persona_check", "for key share", "", "persona_save"),
    ("persona_remove", "for update", "", "persona_save"),
    ("persona_signed_out", "and version = p_version", "", "persona_signed_out"),
    ("persona_signed_out", "and signed_out_at is null", "", "persona_signed_out"),
    ("persona_held", "and q.owner_id = p_worker", "", "persona_signed_out"),
    ("persona_held", "and q.fence = p_fence", "", "persona_signed_out"),
    ("persona_lacks", "v_persona.signed_out_at is not null", "false", "persona_signed_out"),
    ("sign_in_ask", "on conflict (persona) do nothing", "", "sign_in"),
    ("sign_in_take", "for update skip locked", "", "sign_in"),
    ("sign_in_ready", "and process_id = p_worker", "", "sign_in"),
    ("sign_in_open", "for update", "", "sign_in"),
    ("sign_in_open", "v_own.viewer <> p_by", "false", "sign_in"),
    ("sign_in_take", "and o.problem is null", "", "sign_in"),
    ("sign_in_check", "and key_hash = decode(p_key_hash, 'hex')", "", "sign_in"),
    # The gate.
    ("runner_maintenance", "and epoch = p_epoch", "", "gate_guards"),
    ("runner_maintenance", "and lease_until > clock_timestamp()", "", "gate_hold_heartbeat gate_maintenance_takeover"),
    ("runner_clear", "and p.lease_until <= clock_timestamp()", "", "gate_guards"),
    ("runner_heartbeat", "or lease_until > v_now", "or true", "gate_guards"),
    ("runner_heartbeat", "and request = 'leave'", "and false", "gate_guards"),
    ("runner_enter", "(p.started_at, p.id) > (v_me.started_at, v_me.id)", "false", "gate_newest_wins"),
]


def main():
    words = sys.argv[1:]
    programs = postgres.find_programs()
    tester = programs and find_tester(programs)
    if not tester:
        return SKIPPED
    unnoticed = 0
    with Races() as server:
        server.load("race", HERE / "support.sql")

        def noticed(races):
            for race in races.split():
                expected = (HERE / "expected" / f"{race}.out").read_text()
                try:
                    if server.play(tester, "race", HERE / "specs" / f"{race}.spec") != expected:
                        return race
                except subprocess.TimeoutExpired:
                    return race
            return None

        print("| function | taken away | noticed by |\n|---|---|---|")
        for function, old, new, races in GUARDS:
            if words and not any(word in function or word in old for word in words):
                continue
            whole = server.sql(f"select pg_get_functiondef('holdfast.{function}'::regproc)", "race")
            if old not in whole:
                unnoticed += 1
                print(f"| `{function}` | `{' '.join(old.split())}` | **it is not there** |", flush=True)
                continue
            server.sql(whole.replace(old, new, 1), "race")
            race = noticed(races)
            server.sql(whole, "race")
            unnoticed += race is None
            print(
                f"| `{function}` | `{' '.join(old.split())}` | {f'`{race}`' if race else f'**not by {races}**'} |",
                flush=True,
            )
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
