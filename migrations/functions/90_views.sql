-- Views for users. Names and columns of these views are stable between releases; new columns are added at the
-- end. Time is that of the statement: no index serves a comparison with clock_timestamp(), which changes from
-- row to row. A column without a comment here has the comment of the column of that name in its table;
-- holdfast inspect reference views prints both.

create or replace view holdfast.v_crawl as
  select c.id, c.label, c.status, c.outcome, c.stop_reason, c.retry_at, c.reason, c.snapshots_total as total,
         c.snapshots_open as open, c.snapshots_succeeded as succeeded, c.snapshots_partial as partial,
         c.snapshots_failed as failed, c.seeds_left, c.bytes, c.max_depth, c.max_urls, c.tags, c.plugins,
         c.priority, c.created_by, c.created_at, c.started_at, c.sealed_at,
         coalesce(c.sealed_at, statement_timestamp()) - c.created_at as age, c.first_url, c.notes,
         c.max_bytes, c.max_time, c.max_parallel, c.deadline_at, c.scope, c.urls_refused as refused,
         c.snapshots_excluded as excluded, c.paused_at, c.stopping_at, c.changed_by, c.retry_of, c.keep_until,
         c.snapshots_cancelled as cancelled
    from holdfast.crawl c;
comment on view holdfast.v_crawl is
  'Crawls. total = open + succeeded + partial + failed + cancelled, always.';
comment on column holdfast.v_crawl.total is 'Number of snapshots.';
comment on column holdfast.v_crawl.open is 'Snapshots not yet sealed.';
comment on column holdfast.v_crawl.succeeded is 'Snapshots sealed with outcome succeeded.';
comment on column holdfast.v_crawl.partial is 'Snapshots sealed with outcome partial.';
comment on column holdfast.v_crawl.failed is 'Snapshots sealed with outcome failed, refused or quarantined.';
comment on column holdfast.v_crawl.cancelled is 'Snapshots cancelled by a command, by the scope or by limits.';
comment on column holdfast.v_crawl.refused is 'URLs that were not added: outside the scope, or archived before.';
comment on column holdfast.v_crawl.excluded is 'Open snapshots outside the scope.';
comment on column holdfast.v_crawl.age is 'Duration of the crawl so far, or in total.';

create or replace function holdfast.page_status(p_page text, p_crawl text)
  returns text language sql immutable as $$
  -- A paused crawl has no paused rows in snapshot_queue: pausing it writes one row, however large it is.
  select case when p_page = 'queued' and p_crawl = 'paused' then 'paused' else p_page end
$$;
comment on function holdfast.page_status is
  'Returns the state of an open snapshot, from that of its row and that of its crawl.';

create or replace function holdfast.crawl_due(p_crawl holdfast.crawl)
  returns timestamptz language sql immutable as $$
  -- Claims take no page of the crawl before this time. The lease of a worker that expands it does not count.
  select case when p_crawl.status = 'paused' then holdfast.retry_at_max()
              when p_crawl.status = 'queued' and p_crawl.owner_id is null then p_crawl.retry_at
              else '-infinity' end
$$;

create or replace function holdfast.page_due(p_page holdfast.snapshot_queue, p_crawl holdfast.crawl)
  returns timestamptz language sql immutable as $$
  select case
           when p_page.owner_id is null and p_page.retry_at is not null
             then greatest(p_page.retry_at, holdfast.crawl_due(p_crawl))
           else p_page.retry_at
         end
$$;
comment on function holdfast.crawl_due is
  'Returns the time before which no page of a crawl is claimed; 9999-01-01: the crawl is paused.';
comment on function holdfast.page_due is
  'Returns the time at which an open page is due, by its own time and that of its crawl; if a worker owns it, the end '
  'of the lease; 9999-01-01: paused.';

create or replace function holdfast.page_waits(p_page holdfast.snapshot_queue, p_crawl holdfast.crawl)
  returns text language sql stable as $$
  select case
    when p_page.owner_id is not null then null
    when p_crawl.status = 'paused' then 'its crawl is ' || coalesce(p_crawl.reason, 'paused')
    when p_page.retry_at = holdfast.retry_at_max() then coalesce(p_page.reason, 'paused')
    when holdfast.crawl_due(p_crawl) > greatest(p_page.retry_at, statement_timestamp())
      then 'its crawl is due at ' || holdfast.people_time(p_crawl.retry_at) || coalesce(': ' || p_crawl.reason, '')
    when p_page.retry_at > statement_timestamp() then coalesce(p_page.reason, 'scheduled') end
$$;
comment on function holdfast.page_waits is
  'Returns the reason why an open page is not due; NULL: it is, or a worker owns it.';

create or replace view holdfast.v_snapshot as
  select s.id, s.crawl_id, s.url, s.host, s.depth,
         coalesce(holdfast.page_status(q.status, c.status), 'sealed') as status, e.outcome,
         coalesce(s.given_title, nullif(e.title, ''), s.title) as title,
         holdfast.page_due(q, c) as retry_at,
         coalesce(holdfast.page_waits(q, c), q.reason, e.reason) as reason,
         coalesce(q.fence, e.fence) as fence,
         coalesce(q.owner_id, e.owner_id) as owner_id, p.label as owner, q.claimed_at,
         coalesce(q.claimed_at, e.started_at) as started_at, e.sealed_at, e.directory, e.manifest_sha256,
         e.bytes, e.files, coalesce(q.attempts, e.attempts) as attempts,
         coalesce(q.lapses, e.lapses) as lapses, s.parent_id,
         s.tags, s.created_at, coalesce(u.url, s.found_on) as found_on,
         holdfast.fact_integer(e.facts, 'http_status') as http_status, e.facts ->> 'mime' as mime,
         s.bookmarked_at, s.source, s.notes,
         holdfast.fact_integer(e.facts, 'requests') as requests,
         holdfast.fact_integer(e.facts, 'requests_refused') as requests_refused,
         holdfast.fact_integer(e.facts, 'received_bytes') as received_bytes,
         holdfast.fact_integer(e.facts, 'resources') as resources,
         holdfast.fact_integer(e.facts, 'resources_missing') as resources_missing,
         e.facts -> 'missing_reasons' as missing_reasons,
         e.facts -> 'unrecorded' as unrecorded,
         holdfast.fact_integer(e.facts, 'bytes_saved') as bytes_saved,
         e.facts ->> 'change' as change, (e.facts ->> 'change_from')::uuid as change_from,
         holdfast.fact_integer(e.facts, 'words_added') as words_added,
         holdfast.fact_integer(e.facts, 'words_removed') as words_removed,
         (e.facts ->> 'look_share')::numeric as look_share, e.facts ->> 'digest' as digest,
         (e.facts ->> 'files_from')::uuid as files_from,
         e.facts
    from holdfast.snapshot s
    left join holdfast.snapshot u on u.id = s.parent_id and u.crawl_id = s.crawl_id
    left join holdfast.snapshot_queue q on q.snapshot_id = s.id and q.crawl_id = s.crawl_id
    left join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    left join holdfast.process p on p.id = coalesce(q.owner_id, e.owner_id)
    left join holdfast.crawl c on c.id = q.crawl_id;
comment on view holdfast.v_snapshot is 'Snapshots: the request, the present state, and the outcome.';
comment on column holdfast.v_snapshot.id is 'The snapshot.';
comment on column holdfast.v_snapshot.status is 'queued, started, paused (or its crawl is) or sealed.';
comment on column holdfast.v_snapshot.title is
  'Title that a user set, else the one found on the page, else the one given with the URL.';
comment on column holdfast.v_snapshot.retry_at is 'Due time, or the end of the owner''s lease; 9999-01-01: paused.';
comment on column holdfast.v_snapshot.reason is 'Reason for waiting, or for the outcome.';
comment on column holdfast.v_snapshot.fence is 'Attempt; its files are in <directory>, which ends in a<fence>.';
comment on column holdfast.v_snapshot.owner_id is 'Worker that owns the snapshot, or sealed it.';
comment on column holdfast.v_snapshot.owner is 'The name of that worker.';
comment on column holdfast.v_snapshot.started_at is 'Start of the attempt that runs, or that was sealed.';
comment on column holdfast.v_snapshot.attempts is 'Attempts spent.';
comment on column holdfast.v_snapshot.lapses is 'Number of workers that lapsed while they owned the page.';
comment on column holdfast.v_snapshot.found_on is 'Page on which the URL was found; NULL: a seed.';
comment on column holdfast.v_snapshot.http_status is
  'HTTP status of the page; with 400 and above the outcome is failed. NULL: unknown.';
comment on column holdfast.v_snapshot.mime is 'Media type of that response, without parameters.';
comment on column holdfast.v_snapshot.requests is
  'Requests of the hooks, as the egress proxy counted them: a TLS connection counts once, the crawl''s browser is '
  'not included. NULL: the hooks did not use the proxy.';
comment on column holdfast.v_snapshot.requests_refused is
  'Requests that the proxy refused, mostly to private addresses.';
comment on column holdfast.v_snapshot.received_bytes is 'Bytes that the hooks received through the proxy.';
comment on column holdfast.v_snapshot.resources is
  'URLs that the page requested or names, as the browser counted them. NULL: no browser recorded the page.';
comment on column holdfast.v_snapshot.resources_missing is
  'Resources that are not in the record, or not complete.';
comment on column holdfast.v_snapshot.missing_reasons is 'Number of missing resources by reason.';
comment on column holdfast.v_snapshot.unrecorded is
  'Bytes by host that the proxy received for the page and that are in no WARC record. {}: none. NULL: the page has '
  'no WARC file, or the hooks did not use the proxy.';
comment on column holdfast.v_snapshot.bytes_saved is
  'Bytes of WARC records that revisit records did not repeat; NULL: none.';
comment on column holdfast.v_snapshot.change is
  'Change since the last capture of the URL with the same persona and kind: first, same, text, look, links, title, '
  'status, gone or back. NULL: not compared, as a page that failed or showed a challenge.';
comment on column holdfast.v_snapshot.change_from is 'The last capture; it may be removed since. NULL: this is the first.';
comment on column holdfast.v_snapshot.words_added is 'Words of the text that the last capture did not have.';
comment on column holdfast.v_snapshot.words_removed is 'Words of the text of the last capture that are not in this one.';
comment on column holdfast.v_snapshot.look_share is
  'Share of the area of the page, 0 to 1, whose pictures or styles differ from the last capture.';
comment on column holdfast.v_snapshot.digest is 'Digest of the main resource, as in v_capture.';
comment on column holdfast.v_snapshot.files_from is
  'Capture whose files this one shows, because the site said that they were unchanged; it may be removed since. NULL: '
  'hooks ran.';

create or replace view holdfast.v_change as
  select e.snapshot_id as id, e.crawl_id, s.url, s.host,
         coalesce(s.given_title, nullif(e.title, ''), s.title) as title, s.tags,
         e.facts ->> 'change' as change, (e.facts ->> 'change_share')::numeric as share,
         holdfast.fact_integer(e.facts, 'words_added') as words_added,
         holdfast.fact_integer(e.facts, 'words_removed') as words_removed,
         holdfast.fact_integer(e.facts, 'words_moved') as words_moved,
         holdfast.fact_integer(e.facts, 'links_added') as links_added,
         holdfast.fact_integer(e.facts, 'links_removed') as links_removed,
         (e.facts ->> 'look_share')::numeric as look_share,
         (e.facts ->> 'change_from')::uuid as change_from, e.sealed_at
    from holdfast.snapshot_sealed e
    join holdfast.snapshot s on s.id = e.snapshot_id and s.crawl_id = e.crawl_id
    where e.facts ->> 'change' not in ('first', 'same');
comment on view holdfast.v_change is 'Captures whose page differs from the last capture of its URL.';
comment on column holdfast.v_change.id is 'The snapshot that found the change.';
comment on column holdfast.v_change.title is 'See v_snapshot.title.';
comment on column holdfast.v_change.change is 'text, look, links, title, status, gone or back.';
comment on column holdfast.v_change.share is
  'Amount of the change, 0 to 1: of words, links or area; 1 for title, status, gone and back.';
comment on column holdfast.v_change.words_added is 'See v_snapshot.words_added.';
comment on column holdfast.v_change.words_removed is 'See v_snapshot.words_removed.';
comment on column holdfast.v_change.words_moved is 'Words of blocks that are in another place.';
comment on column holdfast.v_change.links_added is 'Links that the last capture did not have.';
comment on column holdfast.v_change.links_removed is 'Links of the last capture that are not in this one.';
comment on column holdfast.v_change.look_share is 'See v_snapshot.look_share.';
comment on column holdfast.v_change.change_from is 'See v_snapshot.change_from.';

create or replace view holdfast.v_queue as
  select q.snapshot_id as id, q.crawl_id, s.url,
         holdfast.page_status(q.status, c.status) as status, q.retry_at,
         case when q.owner_id is not null then 'owned by ' || p.label
              when c.stopping_at is not null then 'about to be cancelled'
              when c.status = 'paused' then 'waits: ' || w.reason
              when a.paused_at is not null then 'waits: ' || coalesce(a.paused_by, 'everything is paused')
              when q.excluded then 'outside: ' || coalesce(q.reason, 'its crawl''s scope')
              when w.reason is not null then 'waits: ' || w.reason
              when h.paused then 'waits: ' || coalesce(h.reason, 'its host is paused')
              when h.backoff_until > statement_timestamp()
                then 'waits: ' || coalesce(h.reason, 'its host is in back-off')
              when h.last_at + d.delay > statement_timestamp()
                then 'waits: its host is limited to one page every ' || d.delay
              else 'due' end as state,
         statement_timestamp() - holdfast.page_due(q, c) as due_for, q.attempts, q.lapses, q.owner_id
    from holdfast.snapshot_queue q
    -- By its id alone, which is unique: for a join over two columns the planner expects few rows, and then
    -- sorts the whole queue to show its first rows.
    join holdfast.snapshot s on s.id = q.snapshot_id
    join holdfast.crawl c on c.id = q.crawl_id
    cross join holdfast.collection a
    left join holdfast.host h on h.name = q.host
    left join lateral (select holdfast.host_delay(h, c) as delay) d on true
    left join lateral (select holdfast.page_waits(q, c) as reason) w on true
    left join holdfast.process p on p.id = q.owner_id
    where q.status <> ''; -- always true: see snapshot_queue_by_time
comment on view holdfast.v_queue is 'Everything that is not sealed. Always use a limit on a large queue.';
comment on column holdfast.v_queue.id is 'The snapshot.';
comment on column holdfast.v_queue.status is 'queued, started or paused (or its crawl is).';
comment on column holdfast.v_queue.retry_at is
  'Own due time of the page, or the end of the owner''s lease; its crawl may be due later, see state. 9999-01-01: the '
  'page itself is paused.';
comment on column holdfast.v_queue.state is '"due", the owner, or the reason for waiting and its end.';
comment on column holdfast.v_queue.due_for is 'Time since the page is due; below zero: time until then.';

-- Everything that reads running hooks reads this view. A row of running_hook counts only while its worker
-- holds the snapshot with that fence. The left joins cost nothing where their columns are not selected.
create or replace view holdfast.v_running as
  select r.snapshot_id, r.crawl_id, s.url, r.plugin, r.hook_name, r.background,
         statement_timestamp() - r.started_at as running_for,
         r.timeout_ms * interval '1 millisecond' as timeout, p.label as worker, r.pid, r.fence,
         r.no_progress_since, r.started_at, r.process_id, r.started_with
    from holdfast.running_hook r
    join holdfast.snapshot_queue q
      on q.snapshot_id = r.snapshot_id and q.crawl_id = r.crawl_id and q.fence = r.fence
         and q.owner_id = r.process_id
    left join holdfast.snapshot s on s.id = r.snapshot_id and s.crawl_id = r.crawl_id
    left join holdfast.process p on p.id = r.process_id
    where r.ended_at is null;
comment on view holdfast.v_running is 'Hooks that run now, and where.';
comment on column holdfast.v_running.running_for is 'Duration so far.';
comment on column holdfast.v_running.timeout is 'Time limit.';
comment on column holdfast.v_running.worker is 'Name of the worker that runs the hook.';
comment on column holdfast.v_running.fence is 'The attempt.';

-- The union is of plain tables with equal types, so that indexes give its rows in order. Stale rows of
-- running_hook are filtered out after it.
create or replace view holdfast.v_result as
  select r.snapshot_id, r.crawl_id, s.url, r.fence, r.plugin, r.hook_name, r.status, r.output, r.error,
         r.output_bytes, jsonb_array_length(r.output_files) as files, r.exit_code, r.exit_signal, r.wall_ms,
         r.cpu_ms, r.peak_memory_bytes, r.started_at, r.ended_at, r.output_files,
         (e.fence is null or e.fence = r.fence) as counts, r.process_id, r.started_with, r.pid
    from (select snapshot_id, crawl_id, fence, plugin, hook_name, status, output, error, output_bytes,
                 exit_code, exit_signal, wall_ms, user_ms + system_ms as cpu_ms, peak_memory_bytes,
                 started_at, ended_at, output_files, process_id, started_with, pid, false as in_work
            from holdfast.archive_result
          union all
          select snapshot_id, crawl_id, fence, plugin, hook_name, coalesce(ended ->> 'status', 'started'),
                 coalesce(ended ->> 'output', ''), coalesce(ended ->> 'error', ''),
                 coalesce((ended ->> 'output_bytes')::bigint, 0), (ended ->> 'exit_code')::integer,
                 (ended ->> 'exit_signal')::integer, (ended ->> 'wall_ms')::bigint,
                 (ended ->> 'user_ms')::bigint + (ended ->> 'system_ms')::bigint,
                 (ended ->> 'peak_memory_bytes')::bigint, started_at, ended_at, jsonb '[]', process_id,
                 started_with, pid, true
            from holdfast.running_hook) r
    -- "limit 1" tells the planner that there is one row. On partitioned tables it has no foreign key, expects
    -- few rows of a join over two columns, and then sorts all results to show the first.
    cross join lateral (select s.url
                          from holdfast.snapshot s
                          where s.id = r.snapshot_id and s.crawl_id = r.crawl_id
                          limit 1) s
    left join lateral (select e.fence
                         from holdfast.snapshot_sealed e
                         where e.snapshot_id = r.snapshot_id and e.crawl_id = r.crawl_id
                         limit 1) e on true
    where not r.in_work
      or exists (select
                   from holdfast.snapshot_queue q
                   where q.snapshot_id = r.snapshot_id and q.crawl_id = r.crawl_id and q.fence = r.fence
                     and q.owner_id = r.process_id);
comment on view holdfast.v_result is
  'Results of hooks, also of those that run now (status started). Hooks that have ended on a page in work are '
  'included at once; their files follow with the end of the page.';
comment on column holdfast.v_result.fence is 'Attempt; matches the a<fence> of the directory.';
comment on column holdfast.v_result.status is
  'started (running now), or final: succeeded, failed, skipped, noresults.';
comment on column holdfast.v_result.ended_at is 'End of the hook; NULL: running.';
comment on column holdfast.v_result.files is 'Number of files that the hook left.';
comment on column holdfast.v_result.cpu_ms is
  'CPU time of the hook and all processes that it started, in milliseconds.';
comment on column holdfast.v_result.started_with is
  'Command, directory and environment, without secrets, of hooks that run or failed: {command, directory, '
  'environment}.';
comment on column holdfast.v_result.pid is 'Process id of the hook on its machine.';
comment on column holdfast.v_result.counts is 'False if the snapshot was sealed by another attempt.';

create or replace view holdfast.v_failure as
  select r.ended_at, s.url, r.plugin, r.error, r.snapshot_id, r.crawl_id, r.hook_name, r.fence, s.host
    from holdfast.archive_result r
    cross join lateral (select s.url, s.host
                          from holdfast.snapshot s
                          where s.id = r.snapshot_id and s.crawl_id = r.crawl_id
                          limit 1) s -- as in v_result
    where r.status = 'failed'
      and not exists (select
                        from holdfast.attempt a
                        where a.snapshot_id = r.snapshot_id and a.crawl_id = r.crawl_id
                          and a.fence = r.fence and a.ending in ('interrupted', 'cancelled'));
comment on view holdfast.v_failure is
  'Hooks that failed, and why; without those that were ended '
  'by a command (pause, cancel) or because their worker left.';
comment on column holdfast.v_failure.fence is 'The attempt.';

create or replace view holdfast.v_attempt as
  select a.snapshot_id, a.crawl_id, a.fence, a.process_id, a.claimed_at, a.ended_at, a.ending, a.reason,
         a.hooks
    from holdfast.attempt a
  union all
  select e.snapshot_id, e.crawl_id, e.fence, e.owner_id, e.started_at, e.sealed_at, 'sealed',
         e.outcome || coalesce(': ' || e.reason, ''), '{}'
    from holdfast.snapshot_sealed e
    where e.outcome not in ('cancelled', 'quarantined');
comment on view holdfast.v_attempt is 'Every ownership of a snapshot that has ended, and how.';
comment on column holdfast.v_attempt.fence is 'The attempt.';
comment on column holdfast.v_attempt.ending is
  'sealed, released (to retry), interrupted (worker stopped), lapsed (worker lapsed), declined '
  '(not begun) or cancelled.';
comment on column holdfast.v_attempt.reason is 'A sentence; for a sealed attempt, its outcome.';

create or replace function holdfast.process_state(p_process holdfast.process)
  returns text language sql stable as $$
  -- A process that was killed has its lease until that ends. Three heartbeats fit into a lease.
  select case when p_process.status = 'exited' then 'exited'
              when p_process.lease_until <= statement_timestamp() then 'lapsed'
              when p_process.heartbeat_at + (p_process.lease_until - p_process.heartbeat_at) / 2
                   < statement_timestamp() then 'no heartbeat'
              when p_process.request is not null then 'asked to ' || p_process.request
              when p_process.draining then 'draining'
              when p_process.paused_at is not null then 'paused'
              when p_process.stats ->> 'not_claiming' is not null then 'not claiming'
              when p_process.worker_type = 'worker_runner' then 'leads'
              when p_process.standby then 'stands by'
              when p_process.worker_type = 'runner_waiting' then 'waits'
              else 'runs' end
$$;
comment on function holdfast.process_state is
  'Returns the state of a process: runs, leads, stands by, waits, draining, paused, not claiming, asked to ..., no '
  'heartbeat (for half of its lease, which still holds), lapsed or exited.';

create or replace view holdfast.v_worker as
  select p.id, p.label, p.process_type, p.worker_type, m.hostname, p.pid, p.status, p.draining, p.slots,
         (select count(*) from holdfast.snapshot_queue q where q.owner_id = p.id) as held, p.heartbeat_at,
         p.lease_until, p.lease_until - statement_timestamp() as lease_left, p.request, p.version, p.stats,
         p.started_at, p.ended_at, p.exit_code, p.exit_reason, p.revision, p.capabilities,
         p.capabilities ->> 'browser' as browser, p.login, holdfast.process_state(p) as state
    from holdfast.process p
    join holdfast.machine m on m.id = p.machine_id;
comment on view holdfast.v_worker is 'Processes of Holdfast, running and past.';
comment on column holdfast.v_worker.id is 'The process.';
comment on column holdfast.v_worker.state is
  'runs, leads, stands by, waits, draining, paused, not claiming, asked to ..., no heartbeat (for half of its lease, '
  'which still holds), lapsed or exited.';
comment on column holdfast.v_worker.held is 'Snapshots that the worker owns.';
comment on column holdfast.v_worker.browser is
  'Sandbox of the browser, or why the browser does not start; NULL: not tried, or no browser.';
comment on column holdfast.v_worker.login is 'Database login with which the process joined.';
comment on column holdfast.v_worker.lease_left is 'Time until the lease expires without another heartbeat.';

create or replace view holdfast.v_event as
  select e.at, e.lifecycle, o.object_id, e.crawl_id, e.from_state, e.event, e.to_state, p.label as process,
         e.detail, e.id
    from holdfast.event e
    cross join lateral unnest(coalesce(e.objects, array[e.object_id])) o(object_id)
    left join holdfast.process p on p.id = e.process_id;
comment on view holdfast.v_event is
  'Transitions of all objects. For one snapshot, list_events(null, its id, 100) is quicker.';
comment on column holdfast.v_event.process is 'Process that made the transition.';
comment on column holdfast.v_event.id is 'Order of recording.';

create or replace view holdfast.v_host as
  select h.name, h.min_delay, h.robots_delay, h.max_parallel, h.last_at, h.backoff_until, h.backoff_level,
         h.paused, h.reason, h.updated_by, h.updated_at,
         (select count(*)
            from holdfast.snapshot_queue q
            where q.host = h.name and q.claimed_at is not null) as held
    from holdfast.host h;
comment on view holdfast.v_host is
  'Hosts that crawls with limits have met, or for which users have set limits; where a limit is NULL, that of the '
  'crawl applies.';
comment on column holdfast.v_host.held is 'Snapshots of the host that workers own.';

create or replace view holdfast.v_status as
  select w.workers, w.slots, c.crawls_open, c.snapshots_open,
         (select count(*) from holdfast.snapshot_queue q where q.owner_id is not null) as snapshots_held,
         (select count(*) from holdfast.v_running) as hooks_running, c.crawls_paused,
         (select max(e.sealed_at)
            from holdfast.snapshot_sealed e
            where e.sealed_at > statement_timestamp() - interval '30 days') as last_sealed_at,
         c.crawls_open - c.crawls_paused as crawls_to_do,
         (select a.paused_by from holdfast.collection a where a.paused_at is not null) as paused,
         w.runners,
         (select count(*)
            from holdfast.process p
            where p.process_type = 'worker' and p.exit_reason = 'lease lapsed'
              and p.ended_at > statement_timestamp() - interval '1 hour') as workers_lapsed,
         (select coalesce(sum(t.value), 0) from holdfast.tally t where t.name like 'bytes\_saved/%') as bytes_saved
    from (select count(*) filter (where p.process_type = 'worker') as workers,
                 coalesce(sum(p.slots) filter (where p.process_type = 'worker'), 0) as slots,
                 count(*) filter (where p.worker_type = 'worker_runner') as runners
            from holdfast.process p
            where p.status = 'running' and p.lease_until > statement_timestamp()) w
    cross join (select count(*) as crawls_open, count(*) filter (where o.status = 'paused') as crawls_paused,
                       coalesce(sum(o.snapshots_open + o.seeds_left), 0) as snapshots_open
                  from holdfast.crawl o
                  where o.status <> 'sealed') c;
comment on view holdfast.v_status is 'The collection in one row; fast also for large collections.';
comment on column holdfast.v_status.workers is 'Workers with a valid lease.';
comment on column holdfast.v_status.slots is 'Number of snapshots that all workers process at once.';
comment on column holdfast.v_status.crawls_open is 'Crawls that are not sealed.';
comment on column holdfast.v_status.snapshots_open is 'Snapshots and seeds of these that are not done.';
comment on column holdfast.v_status.snapshots_held is 'Snapshots that workers have.';
comment on column holdfast.v_status.hooks_running is 'Hooks that run now.';
comment on column holdfast.v_status.crawls_paused is 'Open crawls that are paused.';
comment on column holdfast.v_status.last_sealed_at is 'Time of the last seal, in the last 30 days.';
comment on column holdfast.v_status.crawls_to_do is 'Open crawls that are not paused.';
comment on column holdfast.v_status.paused is 'User who paused everything, and why; NULL: not paused.';
comment on column holdfast.v_status.runners is
  '1: a runner leads; 0: schedules, retention and maintenance wait.';
comment on column holdfast.v_status.workers_lapsed is 'Workers whose lease lapsed in the last hour.';
comment on column holdfast.v_status.bytes_saved is
  'Bytes of WARC records that revisit records did not repeat, since the collection was created.';

create or replace view holdfast.v_state as
  select x.status, x.snapshots
    from (select coalesce(sum(c.snapshots_open), 0) as open,
                 coalesce(sum(c.snapshots_total - c.snapshots_open), 0) as sealed,
                 coalesce(sum(c.snapshots_open) filter (where c.status = 'paused'), 0) as of_paused
            from holdfast.crawl c) c
    cross join (select count(*) as started, count(*) filter (where c.status = 'paused') as of_paused
                  from holdfast.snapshot_queue q
                  join holdfast.crawl c on c.id = q.crawl_id
                  where q.owner_id is not null) h
    cross join (select count(*) as paused
                  from holdfast.snapshot_queue q
                  join holdfast.crawl c on c.id = q.crawl_id
                  where q.retry_at = holdfast.retry_at_max() and q.status = 'paused' and c.status <> 'paused') p
    cross join lateral (values
      ('queued', c.open - h.started - p.paused - (c.of_paused - h.of_paused)),
      ('started', h.started),
      ('paused', p.paused + c.of_paused - h.of_paused),
      ('sealed', c.sealed)) x(status, snapshots);
comment on view holdfast.v_state is
  'Number of snapshots in each state. Reads one row for each crawl, and the pages that are started or paused.';
comment on column holdfast.v_state.status is 'queued, started, paused (or its crawl is) or sealed.';
comment on column holdfast.v_state.snapshots is 'Snapshots in that state.';

create or replace view holdfast.v_total as
  select count(*) as crawls, coalesce(sum(c.snapshots_total), 0) as snapshots,
         coalesce(sum(c.snapshots_succeeded + c.snapshots_partial), 0) as archived,
         coalesce(sum(c.snapshots_failed), 0) as failed, coalesce(sum(c.bytes), 0) as bytes
    from holdfast.crawl c;
comment on view holdfast.v_total is 'Totals of the collection. Reads one row for each crawl.';
comment on column holdfast.v_total.crawls is 'Crawls.';
comment on column holdfast.v_total.snapshots is 'Snapshots of these.';
comment on column holdfast.v_total.archived is 'Snapshots with outcome succeeded or partial.';
comment on column holdfast.v_total.failed is 'Snapshots with outcome failed, refused or quarantined.';
comment on column holdfast.v_total.bytes is 'Bytes of their files.';
