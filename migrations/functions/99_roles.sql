-- Who may do what. Four roles without login; give them to the users that people and machines log in as:
--   grant holdfast_reader to alice;            sees everything, changes nothing
--   grant holdfast_operator to bob;            also adds, pauses, resumes, cancels, retries, sets hosts, drains nodes
--   grant holdfast_worker to node_user;        what a node and a runner need, and no table
--   grant holdfast_owner to admin;             everything in the schema
-- Nobody but the owner may touch a table: functions check what they are asked, and run as the schema's owner.
-- The migrator applies this file whenever it has changed any other: replacing a function takes its settings away.
-- Where the migrating user may not create roles (CREATEROLE), there are none and nothing is changed.

create or replace function holdfast.grant_roles() returns text language plpgsql as $$
declare
  v_role text;
  v_object record;
  -- Entry points; what they call in turn runs as the owner and is granted to nobody.
  -- Plain reading of arguments or views: needs no rights of the owner, and stays open to the planner.
  v_plain constant text[] := '{retry_at_max, new_uuid, people_time, people_duration, people_count, people_order, schedule_next, schedule_times, cron_field, scope_refusal,
    url_matches, is_own_host, like_part, no_progress}';
  v_read constant text[] := '{find, why, search, search_window, crawl_snapshots, metrics, node_metrics, crawl_entries, crawl_seeds, check_invariants, schedule_find,
    crawls_expired, sealed_files, schema_minimum, reference, why_webhook, hook_cost, list_snapshots, list_results, list_events, list_events_after}';
  v_work constant text[] := '{node_join, node_beat, node_leave, lapse_nodes, control_apply, crawl_claim, crawl_expand, crawl_stop_step, crawl_judge_step,
    crawl_session_open, crawl_session_set, work_take, snapshot_take, snapshot_claim, snapshot_claim_open, snapshot_start, snapshot_release, snapshot_seal, snapshot_seal_many, result_start, result_finish, result_amend, result_start_many, result_finish_many,
    runner_join, runner_enter, runner_beat, runner_leave, runner_hold, runner_duty, local_processes, process_gone, host_rate_limited, snapshot_begin, snapshot_enter, robots_get, robots_put, purge_list, purge_waiting, purge_done, crawl_pages_stale, crawl_page_made, claim_wait, crawl_hand_back, node_gone,
    webhook_claim, webhook_report, webhook_hand_back, webhook_wait, log_level_of,
    binary_want, binary_claim, binary_set, binary_known, machine_set_options, machine_options}';
  v_steer constant text[] := '{crawl_add, crawl_add_seeds, crawl_pause, crawl_resume, crawl_cancel, crawl_stop, crawl_stop_step, crawl_scope, crawl_retry,
    crawl_describe, crawl_priority, crawl_keep, crawl_remove, snapshot_remove, snapshot_order, node_pause, node_resume, node_cancel, node_drain, collection_pause, collection_resume, host_set, host_forget, host_pause,
    host_resume, host_cancel, schedule_add, schedule_enable, schedule_remove, schedule_run,
    webhook_set, webhook_enable, webhook_remove, webhook_retry, webhook_test, log_level_set, binary_recheck, crawl_options}';
begin
  begin
    foreach v_role in array array['holdfast_reader', 'holdfast_operator', 'holdfast_worker', 'holdfast_owner'] loop
      begin
        if not exists (select from pg_catalog.pg_roles where rolname = v_role) then execute format('create role %I nologin', v_role); end if;
      exception when duplicate_object or unique_violation then null; -- somebody migrates another database of this server
      end;
    end loop;
  exception when insufficient_privilege then
    return 'no roles: ' || current_user || ' may not create them';
  end;

  execute 'revoke all on schema holdfast from public';
  execute 'grant usage on schema holdfast to holdfast_reader, holdfast_operator, holdfast_worker';
  execute 'grant all on schema holdfast to holdfast_owner';
  execute 'grant all on all tables in schema holdfast to holdfast_owner';
  execute 'grant all on all sequences in schema holdfast to holdfast_owner';
  execute 'grant all on all functions in schema holdfast to holdfast_owner';
  execute 'revoke all on all functions in schema holdfast from public, holdfast_reader, holdfast_operator, holdfast_worker';
  execute 'revoke all on all tables in schema holdfast from public, holdfast_reader, holdfast_operator, holdfast_worker';
  -- Besides the views: which collection and which schema this is.
  execute 'grant select on holdfast.collection, holdfast.lifecycle_edge to holdfast_reader, holdfast_operator, holdfast_worker';
  if to_regclass('holdfast.schema_migration') is not null then -- not there when psql applied the files
    execute 'grant select on holdfast.schema_migration to holdfast_reader, holdfast_operator, holdfast_worker';
  end if;
  for v_object in
    select c.oid::regclass as name from pg_catalog.pg_class c where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('v', 'm')
  loop
    execute format('grant select on %s to holdfast_reader, holdfast_operator, holdfast_worker', v_object.name);
  end loop;
  for v_object in
    select p.oid::regprocedure as name, p.proname as word from pg_catalog.pg_proc p where p.pronamespace = 'holdfast'::regnamespace and p.prokind = 'f'
  loop
    if v_object.word = any (v_read || v_work || v_steer) then
      execute format('alter function %s security definer set search_path = holdfast, pg_temp', v_object.name);
    end if;
    if v_object.word = any (v_read || v_plain) or v_object.word like 'list\_%' then
      execute format('grant execute on function %s to holdfast_reader, holdfast_operator, holdfast_worker', v_object.name);
    end if;
    if v_object.word = any (v_work) then execute format('grant execute on function %s to holdfast_worker', v_object.name); end if;
    if v_object.word = any (v_steer) then execute format('grant execute on function %s to holdfast_operator', v_object.name); end if;
  end loop;
  return 'granted';
end $$;
comment on function holdfast.grant_roles() is 'Makes the roles and gives each what it needs; may be repeated. Says what it did.';
revoke all on function holdfast.grant_roles() from public;

do $$ begin perform holdfast.grant_roles(); end $$;
