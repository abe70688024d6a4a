-- What the columns of views are, where no column of a table says it under the same name.

do $$
declare
  v_line text;
  v_at integer;
begin
  foreach v_line in array string_to_array(btrim($lines$
v_attempt.fence Which attempt at the snapshot.
v_attempt.started_at When its owner began on it; NULL if it never came to that.
v_backlog.crawls_due Crawls whose seeds are due to be expanded, at most 100.
v_backlog.snapshots_due Snapshots that are due, counted no further than whoever starts workers needs.
v_backlog.held What nodes have: snapshots, and crawls being expanded.
v_backlog.unfinished Whether anything is left to do, now or later, that is not paused.
v_backlog.workers Nodes that could take it.
v_binary.id What on_Binary hooks are told it is called.
v_crawl.total Snapshots it has.
v_crawl.succeeded Snapshots sealed with outcome succeeded.
v_crawl.partial Snapshots sealed with outcome partial.
v_crawl.failed Snapshots sealed with any other outcome, but for those that were cancelled.
v_crawl.cancelled Snapshots sealed as cancelled: somebody said so, or the crawl's scope or limits.
v_crawl.refused URLs that were not taken: outside its scope, or archived before.
v_crawl.excluded Open snapshots that its scope excludes.
v_duty.due_in How long until it is due; below zero: overdue.
v_event.process The process that did it.
v_event.id Order of recording.
v_failure.crawl_id The crawl.
v_failure.fence Which attempt at the snapshot.
v_failure.snapshot_id The snapshot.
v_hook_cost.plugin The plugin.
v_hook_cost.hostname The machine.
v_hook_cost.runs Results looked at.
v_hook_cost.failed How many of them failed.
v_hook_cost.wall_ms_median Time a run took, in milliseconds: half took no longer.
v_hook_cost.wall_ms_p95 Time that 95 of 100 runs did not exceed.
v_hook_cost.wall_ms_max The longest.
v_hook_cost.cpu_ms_median Processor time of a run with all that it started, in milliseconds: half took no more.
v_hook_cost.cpu_ms_p95 Processor time that 95 of 100 runs did not exceed.
v_hook_cost.cpu_ms_max The most.
v_hook_cost.cpu_ms_total Processor time of all these runs.
v_hook_cost.peak_memory_median Largest process of a run, in bytes: half had none larger.
v_hook_cost.peak_memory_max The largest of all.
v_hook_cost.io_bytes_total Bytes read from and written to storage.
v_hook_cost.output_bytes_total Size of the files they left.
v_host.held Snapshots of it in work.
v_node.id The process.
v_node.held Snapshots it owns.
v_node.lease_left How long its work is covered; below zero: it will be given to others.
v_process.pid Its number on that machine.
v_process.age How long it has run.
v_process.lease_left For processes of ours: how long their work is covered.
v_process.process_id The node or runner; of a hook, the node that runs it.
v_process.crawl_id For hooks: the crawl.
v_queue.id The snapshot.
v_queue.crawl_id Its crawl.
v_queue.status queued, started or paused.
v_queue.state Due, or who has it, or what it waits for.
v_queue.due_for How long it has been due; below zero: how long until it is.
v_purge.waits How long ago that was.
v_result.crawl_id The crawl.
v_result.fence Attempt; matches the a<fence> of the directory.
v_result.files Number of files it left.
v_result.cpu_ms Processor time of the hook with all that it started, in milliseconds.
v_result.counts Whether this is of the attempt that was sealed (or of the one that runs), not of one that was lost.
v_robots.size Length of what it said, in characters.
v_runner.id The process.
v_runner.state leads, stands by or waits.
v_runner.epoch Number of its lead.
v_runner.lease_left How long it leads, or waits, without another beat.
v_runner.leads_since When it was let through the gate.
v_running.crawl_id The crawl.
v_running.running_for How long it has run.
v_running.timeout How long it may.
v_running.node The node that runs it.
v_running.no_progress_since Since when it has neither printed, written nor computed (hook.stall_timeout ends it for that); NULL: it does.
v_session_log.node The node it ran on.
v_schedule.id The schedule.
v_schedule.state active or paused.
v_schedule.last_status Status of the crawl that it made last.
v_schedule.last_outcome Outcome of that crawl.
v_session.id The session.
v_session.crawl_id The crawl.
v_session.node The node.
v_session.ended_at When it ended; NULL: it lives.
v_session.age How long it lived, or has so far.
v_snapshot.id The snapshot.
v_snapshot.crawl_id Its crawl.
v_snapshot.found_on The page on which its URL was found, also if that snapshot has been removed. NULL: a seed.
v_snapshot.title Title found on the page, else the one that came with the URL.
v_snapshot.reason Why it waits, or why it ended so.
v_snapshot.owner_id The node that works on it, or sealed it.
v_snapshot.started_at When the attempt that counts began.
v_snapshot.attempts Attempts spent.
v_snapshot.owners_lost How many owners died while they held it.
v_snapshot.tags Tags given and found.
v_status.nodes Nodes whose lease holds.
v_status.crawls_open Crawls that are not sealed.
v_status.snapshots_held Snapshots in work.
v_status.hooks_running Hooks that run.
v_status.crawls_paused Open crawls that are paused.
v_status.last_sealed_at When a snapshot was last sealed, in the last 30 days.
v_status.crawls_to_do Open crawls that are not paused.
v_status.paused Who paused everything, and why; NULL: it is not paused.
v_status.runners 1: a runner leads; 0: schedules, retention and housekeeping wait.
v_status.nodes_lost Nodes that were given up in the last hour, for their leases had lapsed.
v_stuck.kind crawl, snapshot, process or runner.
v_stuck.id Its id.
v_stuck.since Since when.
v_stuck.stuck_for How long.
v_stuck.crawl_id The crawl it belongs to.
v_throughput.minute The minute.
v_throughput.sealed Snapshots sealed in it.
v_throughput.succeeded Of these, with outcome succeeded.
v_throughput.partial With outcome partial.
v_throughput.failed With any other.
v_webhook.waiting Deliveries that wait; 1000: so many, or more.
$lines$, E'\n'), E'\n')
  loop
    v_at := position(' ' in v_line);
    execute format('comment on column holdfast.%s is %L', left(v_line, v_at - 1), substr(v_line, v_at + 1));
  end loop;
end $$;
