-- Who may do what. Four roles without login; give them to the users that people and machines log in as:
--   grant holdfast_reader to alice;            sees everything, changes nothing
--   grant holdfast_operator to bob;            also adds, pauses, resumes, cancels, retries, sets hosts, drains workers
--   grant holdfast_worker to worker_user;      what a worker and a runner need, and no table
--   grant holdfast_owner to admin;             everything in the schema
-- Only the owner may touch a table: functions check their arguments, and run as the schema's owner.
-- The migrator applies this file whenever it has changed another one: replacing a function takes its settings away.
-- If the migrating user may not create roles (CREATEROLE), there are none and nothing is changed.

create or replace function holdfast.grant_roles() returns text language plpgsql as $$
-- May be repeated. Says what it did. The lists hold entry points; what these call in turn runs as the owner.
declare
  c_everybody constant text := 'holdfast_reader, holdfast_operator, holdfast_worker';
  -- Functions of their arguments or of views, which run as their caller: they stay open to the planner.
  c_plain constant text[] := '{retry_at_max, new_uuid, scope_refusal, url_matches, has_part}';
  c_read constant text[] := '{find, why, why_webhook, search, search_window, crawl_snapshots, crawl_entries,
    crawl_seeds, crawl_next, sealed_files, directories_unknown, metrics, worker_metrics,
    hook_cost, check_invariants, reference, schedule_find, schedule_next, schedule_times, crawls_expired,
    schema_minimum, list_snapshots, list_results, list_events, list_events_after}';
  c_work constant text[] := '{worker_join, worker_beat, worker_hooks, worker_turn, worker_leave, worker_gone, claim,
    finish, lapse_workers, control_apply, log_level_of, crawl_claim, crawl_expand, crawl_release, crawl_stop_step,
    crawl_judge_step, session_open, session_set, binary_want, binary_claim, binary_set, binary_known,
    machine_set_options, machine_options, runner_join, runner_enter, runner_beat, runner_leave, runner_hold,
    runner_duty, local_processes, host_rate_limited, robots_get, robots_put, purge_list, purge_waiting, purge_done,
    crawl_pages_stale, crawl_page_made, webhook_claim, webhook_report, webhook_hand_back, webhook_wait}';
  c_steer constant text[] := '{crawl_add, crawl_add_seeds, seeds_archived, crawl_options, crawl_pause, crawl_resume,
    crawl_cancel, crawl_stop, crawl_stop_step, crawl_scope, crawl_retry, crawl_describe, crawl_priority, crawl_keep,
    crawl_remove, snapshot_remove, snapshot_describe, snapshot_order, worker_pause, worker_resume, worker_cancel, worker_drain, collection_pause,
    collection_resume, host_set, host_forget, host_pause, host_resume, host_cancel, schedule_add, schedule_enable,
    schedule_remove, schedule_run, webhook_set, webhook_enable, webhook_remove, webhook_retry, webhook_test,
    log_level_set, binary_recheck, crawl_judge_step}';
  v_role text;
  v_table text;
  v_one record;
begin
  foreach v_role in array '{holdfast_reader, holdfast_operator, holdfast_worker, holdfast_owner}'::text[] loop
    begin
      if to_regrole(v_role) is null then execute format('create role %I nologin', v_role); end if;
    exception
      when duplicate_object or unique_violation then null; -- another database of this server is migrated
      when insufficient_privilege then return 'no roles: ' || current_user || ' may not create them';
    end;
  end loop;

  execute 'revoke all on schema holdfast from public';
  execute 'grant usage on schema holdfast to ' || c_everybody;
  execute 'grant all on schema holdfast to holdfast_owner';
  execute 'grant all on all tables in schema holdfast to holdfast_owner';
  execute 'grant all on all sequences in schema holdfast to holdfast_owner';
  execute 'grant all on all functions in schema holdfast to holdfast_owner';
  execute 'revoke all on all functions in schema holdfast from public, ' || c_everybody;
  execute 'revoke all on all tables in schema holdfast from public, ' || c_everybody;
  for v_table in
    select c.oid::regclass from pg_catalog.pg_class c
      where c.relnamespace = 'holdfast'::regnamespace
        and (c.relkind = 'v' and c.relname like 'v\_%'
             or c.relname in ('collection', 'lifecycle_edge', 'schema_migration'))
  loop
    execute format('grant select on %s to %s', v_table, c_everybody);
  end loop;
  for v_one in
    select p.oid::regprocedure as name, p.proname = any (c_read || c_work || c_steer) as as_owner,
           concat_ws(', ',
                     case when p.proname = any (c_read || c_plain) or p.proname like 'list\_%' then c_everybody end,
                     case when p.proname = any (c_work) then 'holdfast_worker' end,
                     case when p.proname = any (c_steer) then 'holdfast_operator' end) as roles
      from pg_catalog.pg_proc p where p.pronamespace = 'holdfast'::regnamespace and p.prokind = 'f'
  loop
    if v_one.as_owner then
      execute format('alter function %s security definer set search_path = holdfast, pg_temp', v_one.name);
    end if;
    if v_one.roles <> '' then execute format('grant execute on function %s to %s', v_one.name, v_one.roles); end if;
  end loop;
  return 'granted';
end $$;
revoke all on function holdfast.grant_roles() from public;

do $$ begin perform holdfast.grant_roles(); end $$;
