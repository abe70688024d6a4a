"""The mutants: a behaviour taken away, and the tests that must notice.

Each has rows of the checklist, whose tests must all fail, or races, one of which must play differently; then a place,
a text that occurs there once, and its replacement. A place is a function, procedure or view of the database, or a file.
"""

import functools
import re

from checklist import NAMES, ROOT


@functools.cache
def objects():
    """Functions and views of the database, by name: (file, text of the statement)."""
    found = {}
    for file in sorted((ROOT / "migrations/functions").glob("*.sql")):
        text = file.read_text()
        for kind in re.finditer(
            r"^create or replace (?:(?:function|procedure) holdfast\.(\w+).*?\$\$;|view holdfast\.(\w+).*?;$)",
            text,
            re.M | re.S,
        ):
            found.setdefault(kind[1] or kind[2], []).append((str(file.relative_to(ROOT)), kind[0]))
    return found


class Mutant:
    def __init__(self, noticing, place, text, replacement):
        words = noticing.split()
        self.rows = [word for word in words if word in NAMES]
        self.races = [word for word in words if word not in NAMES]
        self.place, self.text, self.replacement = place, text, replacement
        self.sql = "/" not in place and place != "docker-compose.yml"

    def places(self):
        return objects().get(self.place, []) if self.sql else [(self.place, (ROOT / self.place).read_text())]

    @property
    def file(self):
        return self.places()[0][0]

    def wrong(self):
        """What is wrong with it, or None."""
        if bool(self.rows) == bool(self.races):
            return f"{self.name()}: rows or races"
        if not self.sql and not (ROOT / self.place).is_file():
            return f"{self.name()}: there is no such file"
        if len(self.places()) != 1:
            return f"{self.name()}: {len(self.places())} such functions or views"
        if (times := self.places()[0][1].count(self.text)) != 1:
            return f"{self.name()}: the text is there {times} times"
        return None

    def statement(self, mutated):
        text = self.places()[0][1]
        return text.replace(self.text, self.replacement) if mutated else text

    def mutated(self):
        """The text of the file with the replacement in it."""
        return (ROOT / self.file).read_text().replace(self.statement(False), self.statement(True))

    def name(self):
        return f"{self.place}: {' '.join(self.text.split())} -> {' '.join(self.replacement.split())}"

    def line(self):
        return f"| {' '.join(self.rows)} | `{self.place}` | `{' '.join(self.text.split())}` |"

    def is_meant(self, word):
        return word in self.rows or word not in NAMES and (word in self.place or word in self.text)


TABLE = [
    # Rows of the checklist that the programs show.
    ("3", "lib/member/membership.cpp", "static_cast<int>(std::thread::hardware_concurrency())", "1000"),
    ("4", "lib/config/key_table.cpp", '{"lease", Type::duration, "60s"', '{"lease", Type::duration, "61s"'),
    ("6", "services/runner/spawner.cpp", "same.running >= most || ", ""),
    ("13 106 127", "lib/store/lifecycle.cpp", '.append(" : ").append(edge.event)', ""),
    (
        "20 47 50 63",
        "services/runner/spawner.cpp",
        "options.idle_timeout > 0 && idle_rounds >= options.idle_timeout",
        "false",
    ),
    ("21", "services/runner/gate.cpp", "if (one.id == id() || !found_dead(one)) continue;", "continue;"),
    ("23", "lib/member/membership.cpp", 'process.label = process_type + " on "', 'process.label = "a process on "'),
    ("24 68 133", "lib/process/identity.cpp", "entry->start_ticks == start_ticks && ", ""),
    ("25 57", "services/runner/spawner.cpp", "kinds.push_back(kind);", "kinds.insert(kinds.end(), {kind, kind});"),
    ("26 65 67", "services/runner/spawner.cpp", '{"worker", "--kind", kind}', '{"version"}'),
    ("27", "lib/hooks/plugin_set.cpp", "  if (names.empty()) {\n    for", "  if (true) {\n    for"),
    (
        "41",
        "lib/pg/pool.cpp",
        "          connection.reset();\n",
        '          if (connection) throw Error(ErrorClass::bug, "lost");\n',
    ),
    ("43 140", "services/runner/gate.cpp", 'return "stepped down for " + rival_', 'return "done"'),
    (
        "45 73",
        "services/worker/worker.cpp",
        'not_claiming().empty() || options_.kind == "crawl"',
        "not_claiming().empty()",
    ),
    (
        "46",
        "services/runner/spawner.cpp",
        "timer_.expires_after(options_.poll)",
        "timer_.expires_after(std::chrono::hours(1))",
    ),
    ("49", "services/runner/spawner.cpp", "|| total >= options.max_total ", ""),
    (
        "48",
        "services/cli/run/run.cpp",
        'settings.integer("runner.max_workers_per_type")',
        'settings.integer("runner.max_total_workers")',
    ),
    ("51 130 142", "v_runner", "when p.worker_type = 'worker_runner' then 'leads'", "when false then 'leads'"),
    ("52", "services/runner/gate.cpp", "|| !found_dead(other)) co_return", "|| true) co_return"),
    ("53", "runner_leave", "ending = p_reason", "ending = null"),
    (
        "55",
        "services/runner/spawner.cpp",
        "return due > 0 && (able == 0 || due > std::int64_t{able} * slots)",
        "return due > 0",
    ),
    ("56", "services/runner/spawner.cpp", "now - crashes.front() > options.crash_window", "false"),
    ("58", "v_backlog", "+ count(*) filter (where i.process_id is null) as snapshots_due", "* 0 as snapshots_due"),
    ("59", "v_backlog", "(select count(*) from holdfast.snapshot_queue q where q.owner_id is not null)", "0"),
    ("60", "crawl_unfinished", "or q.host <> all (", "or true or q.host <> all ("),
    ("61", "services/runner/spawner.cpp", "if (line != shown_ && !line.empty())", "if (true)"),
    ("62", "services/runner/spawner.cpp", "resting_ == 2 && backlog.unfinished", "false"),
    ("64", "services/runner/spawner.cpp", "  co_await end_workers();\n", ""),
    ("66", "services/cli/add/add.cpp", "options.wait || context.embedded()", "true"),
    ("70", "services/cli/run/run.cpp", "options.only_crawls.assign(touched.begin(), touched.end());", ""),
    ("71", "lib/hooks/plugin_set.cpp", "return before(*left, *right)", "return before(*right, *left)"),
    (
        "72",
        "services/cli/run/work.cpp",
        'CLI::IsMember({"all", "crawl", "snapshot"})',
        'CLI::IsMember({"all", "crawl", "other"})',
    ),
    ("78", "worker_hooks", "coalesce(h.started_with, h.ended -> 'started_with')", "null::jsonb"),
    (
        "81",
        "services/worker/hook/hook_set.cpp",
        "std::max(left, context_.options.kill_grace)",
        "context_.options.kill_grace",
    ),
    ("82", "lib/process/shim/shim.cpp", "  while (reap()) {\n", "  while (reap() && !(leader_gone_ && killing())) {\n"),
    ("87 b", "lib/base/log.cpp", 'line["process"] = process_label', 'line["label"] = process_label'),
    (
        "89",
        "services/worker/session/crawl_sessions.cpp",
        "if (!sessions_.contains(claim.lease.crawl_id)) {",
        "if (true) {",
    ),
    ("90", "services/worker/worker.cpp", "std::max(0, options_.slots - static_cast<int>(running()))", "options_.slots"),
    ("94", "lib/hooks/environment.cpp", '"--snapshot-id=" + context.snapshot_id', '"--snapshot-id="'),
    ("95", "lib/hooks/hook_run.cpp", "    timed_out = true;", "    timed_out = false;"),
    (
        "96",
        "lib/hooks/hook_run.cpp",
        "if (!hook.name.background && !timed_out && !interrupting",
        "if (!timed_out && !interrupting",
    ),
    ("98", "services/worker/turn/claim_conditions.cpp", "if (!archive_.trouble().empty())", "if (false)"),
    ("100", "lib/hooks/plugin_set.cpp", "plugins_.insert_or_assign(name,", 'plugins_.insert_or_assign("p_" + name,'),
    ("131", "worker_may_claim", "p.lease_until > clock_timestamp()", "exists (select from holdfast.v_runner)"),
    ("136 138 144", "v_runner", "when p.standby then 'stands by'", "when p.standby then 'waits'"),
    ("147", "services/runner/gate.cpp", "process.standby = options.standby;", ""),
    ("148", "services/runner/maintenance.cpp", " && !options.spawns) co_return", ") co_return"),
    ("19 97", "worker_hooks", "  delete from holdfast.running_hook where process_id = p_worker;\n", ""),
    ("a", "worker_hooks", "h.ended -> 'started_with'), h.ended,", "h.ended -> 'started_with'), null::jsonb,"),
    ("145 e", "runner_clear", "then least(lease_until, clock_timestamp() + p_grace)", "then lease_until"),
    ("i", "lib/hooks/runner_files.cpp", "if (exit.code == 0 || polite)", "if (exit.code == 3 || polite)"),
    ("B", "lib/base/uuid.cpp", '#include "lib/base/uuid.hpp"', '#include "lib/base/uuid.hpp"\n#include <pqxx/pqxx>'),
    (
        "C",
        "tests/support/test_database.cpp",
        '"test_" + std::to_string(++databases_)',
        '"test_" + std::to_string(databases_)',
    ),
    ("D", "lib/README.md", "process & archive & store & pg & http", "process & archive & store & pg"),
    (
        "38",
        "lib/base/uuid.cpp",
        '#include "lib/base/uuid.hpp"',
        '#include "lib/base/uuid.hpp"\nconst char* query = "select id from holdfast.crawl";',
    ),
    ("E", "can_run", "coalesce(p_capabilities -> 'plugins' ?& p_plugins, true)", "true"),
    ("I", "lib/process/shim/shim.cpp", "++report_.leftovers;", ";"),
    ("J", "docker-compose.yml", "\n  runner: #", "\n  runners: #"),
    (
        "K",
        "worker_may_claim",
        "select not p.draining",
        "select p.id = (select id from holdfast.process order by started_at limit 1) and not p.draining",
    ),
    ("5", "services/runner/spawner.cpp", "std::max(1, processors / 2)", "std::max(1, processors)"),
    (
        "39",
        "services/worker/worker.cpp",
        "notification.substr(6, space - 6));\n  }\n  wake();",
        "notification.substr(6, space - 6));\n  }",
    ),
    (
        "79",
        "v_worker",
        "select p.id, p.label, p.process_type,",
        "select p.id, p.label, 'worker'::text as process_type,",
    ),
    ("80", "v_status", "count(*) filter (where p.process_type = 'worker') as workers", "count(*) as workers"),
    ("91", "lib/hooks/environment.cpp", "if (may.contains(name)) options[name] = value;", ""),
    ("99", "services/worker/hook/hook_set.cpp", "if (!run->hook().name.background) continue;", "continue;"),
    ("141", "lib/server/embedded_server.cpp", "if (!users.try_exclusive()) return;", "(void)users.try_exclusive();"),
    ("146 k", "services/cli/run/serve.cpp", "if (!standby || error", "if (true || error"),
    ("f", "webhook_crawl_sealed", "webhook_tell('crawl.sealed'", "webhook_tell('worker.lapsed'"),
    (
        "j",
        "services/worker/page/hook_choice.cpp",
        "if (plugin_set.hooks_for(hooks::Event::snapshot, selected).empty())\n    throw Failure",
        "if (false)\n    throw Failure",
    ),
    (
        "c",
        "services/worker/page/snapshot_job.cpp",
        "{} {}/{}: started{}, for {} at most",
        "{} {}/{}: begins{}, for {} at most",
    ),
    ("A", "services/runner/gate.cpp", "lost_.empty() && membership_.trusted()", "lost_.empty()"),
    ("L", "migrations/functions/99_roles.sql", "execute 'grant usage on schema holdfast to ' || c_everybody;", ""),
    # Rows of the checklist that functions, views and tables show.
    ("1 16 36 37 F", "claim_due", "for update skip locked", ""),
    (
        "2",
        "claim",
        "  return query select c.*",
        "  if v_ids = '{}' then raise 'empty'; end if;\n  return query select c.*",
    ),
    ("7", "migrations/0001_basics.sql", "'sealed', 'its last snapshot was sealed'", "'sealed', 'it has ended'"),
    ("8 69 75", "entry_points", "process_join, worker_able,", "worker_able,"),
    ("9 126 128", "lifecycle_guard", "if v_events is null then", "if false then"),
    (
        "10 102 109 123",
        "migrations/0003_crawl.sql",
        "check (status in ('queued',",
        "check (status in ('new', 'queued',",
    ),
    ("11", "claim_from_crawl", "if v_ids <> '{}' then", "if false then"),
    (
        "12",
        "never_changes",
        "  raise exception '% of % refused",
        "  return coalesce(new, old);\n  raise exception '% of % refused",
    ),
    ("14 85", "claim_due", "order by q.retry_at", "order by q.retry_at desc"),
    (
        "15",
        "migrations/0004_snapshot.sql",
        "(crawl_id, host, retry_at) where owner_id is null",
        "(crawl_id) where owner_id is null",
    ),
    ("17 122", "claim_take", "retry_at = v_lease", "retry_at = q.retry_at"),
    ("18 54 d", "workers_beside", "w.status = 'running' and w.process_type = 'worker'", "w.process_type = 'none'"),
    (
        "22 108",
        "migrations/0003_crawl.sql",
        "constraint crawl_depth check (max_depth between 0 and 16)",
        "constraint crawl_depth check (max_depth >= 0)",
    ),
    (
        "28",
        "v_snapshot",
        "coalesce(holdfast.page_status(q.status, c.status), 'sealed')",
        "holdfast.page_status(q.status, c.status)",
    ),
    ("29", "claim_take", "status = 'started', event = 'start', fence", "fence"),
    ("30", "lapse_process", "where status = 'running' and lease_until <= clock_timestamp()", "where false"),
    ("31", "page_waits", "when p_page.retry_at > statement_timestamp() then", "when false then"),
    ("32", "claim", "holdfast.lapse_process() = 0 and v_may", "v_may"),
    ("33", "list_queue", "order by retry_at limit", "order by retry_at desc limit"),
    ("34", "claim_take", "attempts = q.attempts + 1", "attempts = q.attempts"),
    ("35", "claim_from_crawl", "v_room integer := p_share;", "v_room integer := least(p_share, 1);"),
    ("40", "seal_pages", "bytes = c.bytes + n.bytes,", ""),
    ("42 101", "lifecycle_guard", "if tg_argv[1] = 'log' then", "if false then"),
    ("44", "check_snapshots", "where (q.snapshot_id is null) = (e.snapshot_id is null)", "where false"),
    ("74 76", "process_join", "v_new.capabilities, v_new.slots,", "v_new.capabilities, 0,"),
    ("77", "process_leave", "exit_code = p_exit_code", "exit_code = null"),
    ("83", "crawl_room", "select p_max_parallel - count(*)", "select p_max_parallel"),
    ("84", "seal_pages", "where holdfast.crawl_settle(c.id)", "where false"),
    ("86", "release_pages", "lapses = q.lapses + p.lapsed::integer", "lapses = q.lapses"),
    ("88", "crawl_settle", "when c.snapshots_total = 0 then 'empty'", ""),
    ("92", "keep_results", "select p.snapshot, p.crawl, p.fence, r.plugin", "select p.snapshot, p.crawl, 1, r.plugin"),
    (
        "93",
        "migrations/0005_result.sql",
        "archive_result_pkey primary key (snapshot_id, crawl_id, fence, plugin, hook_name)",
        "archive_result_pkey check (fence >= 0)",
    ),
    (
        "103 124 125",
        "migrations/0003_crawl.sql",
        "check (status <> 'paused'\n    or (retry_at = '9999-01-01T00:00:00Z' and owner_id is null))",
        "check (status <> '')",
    ),
    ("104", "lease_check", "or p_lease > '1 hour'", ""),
    (
        "105",
        "crawl_pause",
        "if v_crawl.status in ('paused', 'sealed') or",
        "if v_crawl.status in ('queued', 'paused', 'sealed') or",
    ),
    ("107 h", "v_state", "- (c.of_paused - h.of_paused)", ""),
    ("110", "page_due", "else p_page.retry_at", "else p_page.claimed_at"),
    (
        "111",
        "release_pages",
        "when p.delay_ms > 0 then v_now + p.delay_ms",
        "when p.delay_ms > 0 then v_now + 0 * p.delay_ms",
    ),
    ("112 115", "page_status", "p_crawl = 'paused' then 'paused'", "p_crawl = 'paused' then 'queued'"),
    ("113", "judge_pages", "q.fence = p.fence and q.owner_id = p_owner", "q.owner_id = p_owner"),
    ("114", "lifecycle_guard", "v_event := 'direct'", "v_event := v_events[1]"),
    ("116", "clock_rules", "and retry_at > holdfast.page_due_latest(snapshot_id, crawl_id, host)", ""),
    ("117", "release_pages", "attempts = q.attempts - p.unspent::integer", "attempts = q.attempts"),
    (
        "118",
        "claim_due",
        "and q.owner_id is null\n                   and q.retry_at >= p_low\n                   and q.retry_at <= clock_timestamp()",
        "",
    ),
    ("119", "crawl_claim", "where c.owner_id is null", "where c.owner_id is not null"),
    ("120", "claim_pick", "for update skip locked", ""),
    (
        "121",
        "worker_turn",
        "from holdfast.finish(p_worker, p_pages) f",
        "from holdfast.finish(p_worker, p_pages) f where false",
    ),
    (
        "129 H",
        "migrations/0002_process.sql",
        "create unique index process_single_runner",
        "create index process_single_runner",
    ),
    ("132 134 143", "runner_enter", "(p.started_at, p.id) > (v_me.started_at, v_me.id)", "false"),
    ("135", "runner_enter", "v_answer := 'yield'", "v_answer := 'wait'"),
    ("137 139", "runner_maintenance", "and lease_until > clock_timestamp() for key share", "for key share"),
    (
        "G",
        "worker_heartbeat",
        "update holdfast.snapshot_queue\n    set retry_at = v_lease",
        "update holdfast.snapshot_queue\n    set retry_at = retry_at",
    ),
    ("g", "binary_claim", "for update of d skip locked", ""),
    ("stale_fence finish_repeat", "judge_pages", "q.fence = p.fence and q.owner_id = p_owner", "q.fence = p.fence"),
    ("claim_lapse stale_fence", "claim_take", "greatest(q.fence, v_floor) + 1", "greatest(q.fence, 1)"),
    ("hooks_fence", "worker_hooks", "where o.fence <= excluded.fence", ""),
    ("expand_expand expand_lapse", "crawl_expand", "or v_crawl.fence <> p_fence", ""),
    (
        "binary_claim",
        "binary_set",
        "v_row.fence is distinct from p_fence or v_row.owner_id is distinct from p_worker",
        "false",
    ),
    ("webhook_claim", "webhook_report", "and d.fence = p_fence", ""),
    ("claim_rollback", "claim_lanes", "2 * p_room)\n      for update skip locked", "2 * p_room)"),
    (
        "host_claim host_delay",
        "claim_lanes",
        "where h.name = v_lane.host for update skip locked",
        "where h.name = v_lane.host",
    ),
    ("max_parallel", "crawl_room", "for update skip locked", ""),
    (
        "max_bytes expand_lapse cancel_finish commands_finish remove_finish",
        "lock_for",
        "from holdfast.crawl\n    where id = any (p_crawls)\n    order by id\n    for no key update",
        "from holdfast.crawl",
    ),
    ("claim_in_flight_lapse leave_claim", "worker_may_claim", "for key share of p", ""),
    ("turn_leave turn_lapse", "worker_turn", "for key share", ""),
    ("heartbeat_lapse lapse_lapse claim_in_flight_lapse", "lapse_process", "for update skip locked", ""),
    ("leave_claim", "process_leave", "for update", ""),
    ("hooks_lapse", "worker_hooks", "for key share", ""),
    ("session_lapse", "session_open", "for key share", ""),
    ("expand_expand expand_lapse", "crawl_expand", "for no key update", ""),
    ("crawl_claim", "crawl_claim", "for update skip locked", ""),
    ("claim_opens", "crawl_open_small", "for no key update skip locked", ""),
    ("gate_maintenance_takeover gate_hold_heartbeat", "runner_maintenance", "for key share", ""),
    ("turn_lapse", "claim", "if not p_finished then", "if true then"),
    ("claim_waits", "claim_round", "set lock_timeout = '50ms'", ""),
    ("claim_lapse heartbeat_lapse", "lapse_process", "lease_until <= clock_timestamp()", "true"),
    ("claim_lapse heartbeat_lapse", "worker_may_claim", "and p.lease_until > clock_timestamp()", ""),
    ("heartbeat_lapse", "worker_heartbeat", "where id = p_worker and status = 'running'", "where id = p_worker"),
    ("commands_claim pause_claim", "worker_heartbeat", "perform holdfast.control_apply(p_worker);", ""),
    ("heartbeat_extra", "worker_heartbeat", "not (h.snapshot_id = any (p_snapshots))", "false"),
    ("pause_claim", "worker_heartbeat", "q where q.owner_id = p_worker)", "q)"),
    ("heartbeat_extra", "worker_heartbeat", "and h.fence = b.fence", ""),
    ("lapse_lapse quarantine_finish", "judge_released", "v_now.lapses >= v_now.max_lapses", "false"),
    ("lapse_lapse finish_lapse", "release_pages", "q.lapses + p.lapsed::integer", "q.lapses"),
    ("commands_finish expand_expand cancel_finish finish_finish", "crawl_settle", "and c.snapshots_open = 0", ""),
    (
        "finish_links_twice",
        "snapshots_add",
        "not exists (select from same s where s.url_hash = w.url_hash and s.crawl_id = p_crawl)",
        "true",
    ),
    ("max_urls", "snapshots_add", "r.rank <= v_crawl.max_urls - v_crawl.snapshots_total", "true"),
    ("host_claim", "claim_lane", "v_limits.cap - count(*)", "v_limits.cap"),
    ("host_delay", "claim_lane", "if v_next > v_now then", "if false then"),
    ("finish_links_park release_park", "claim_park", "and c.wakes = p_wakes", ""),
    ("release_low_at", "lane_open", ", low_at = least(l.low_at, excluded.next_at)", ""),
    ("release_park claim_lapse", "lane_open", "next_at = least(l.next_at, excluded.next_at)", "next_at = l.next_at"),
    ("persona_save", "persona_save", "and version = p_version", ""),
    ("persona_signed_out", "persona_save", "signed_out_at = case when not p_signed_in then signed_out_at end,", ""),
    ("persona_save", "persona_check", "for key share", ""),
    ("persona_save", "persona_remove", "for update", ""),
    ("persona_signed_out", "persona_signed_out", "and version = p_version", ""),
    ("persona_signed_out", "persona_signed_out", "and signed_out_at is null", ""),
    ("persona_signed_out", "persona_held", "and q.owner_id = p_worker", ""),
    ("persona_signed_out", "persona_held", "and q.fence = p_fence", ""),
    ("persona_signed_out", "persona_lacks", "v_persona.signed_out_at is not null", "false"),
    ("persona_signed_out", "claim_needs", "holdfast.persona_lacks(n.persona, v_can) is null", "true"),
    ("sign_in", "sign_in_ask", "on conflict (persona) do nothing", ""),
    ("sign_in", "sign_in_take", "for update skip locked", ""),
    ("sign_in", "sign_in_ready", "and process_id = p_worker", ""),
    ("sign_in", "sign_in_open", "for update", ""),
    ("sign_in", "sign_in_open", "v_own.viewer <> holdfast.who(p_by)", "false"),
    ("sign_in", "sign_in_take", "and o.problem is null", ""),
    ("sign_in", "sign_in_check", "and key_hash = decode(p_key_hash, 'hex')", ""),
    ("gate_guards", "runner_maintenance", "and epoch = p_epoch", ""),
    ("gate_hold_heartbeat gate_maintenance_takeover", "runner_maintenance", "and lease_until > clock_timestamp()", ""),
    ("gate_guards", "runner_clear", "and p.lease_until <= clock_timestamp()", ""),
    ("gate_guards", "runner_heartbeat", "or lease_until > v_now", "or true"),
    ("gate_guards", "runner_heartbeat", "and request = 'leave'", "and false"),
]

MUTANTS = [Mutant(*row) for row in TABLE]
