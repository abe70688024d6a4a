-- Permissions. Five roles without login; give them to the logins of users and machines:
--   grant holdfast_reader to alice;            sees everything, changes nothing
--   grant holdfast_operator to bob;            also adds, pauses, resumes, cancels, retries, removes, drains
--   grant holdfast_worker to worker_user;      what a worker and a runner need, and no table
--   grant holdfast_serve to page;              gives commands in the names of users, as holdfast serve does
--   grant holdfast_owner to admin;             everything in the schema
-- Only the owner may touch a table: functions check their arguments, and run as the schema's owner.
-- The migrator applies this file whenever it has changed another one, because replacing a function drops its
-- settings. If the migrating user may not create roles (CREATEROLE), `holdfast migrate` says what must be run.

create or replace function holdfast.entry_points()
  returns table (name text, roles text, as_owner boolean) language sql stable as $$
  -- The functions that each role may call. Those that run as the owner need no grants for what they call. The
  -- others run as their caller, so that the planner can look into them.
  select unnest(e.names::text[]), e.roles, e.as_owner
    from (values
      ('holdfast_reader, holdfast_operator, holdfast_worker', false, '{
        retry_at_max, new_uuid, scope_refusal, url_matches, has_part, has_words, kept_directory,
        kept_file, page_status, crawl_due, page_due, page_waits, process_state,
        people_time, people_count, can_run, host_delay, fact_integer, share_of, webhook_shown}'),
      ('holdfast_reader, holdfast_operator, holdfast_worker', true, '{
        database_waits, failing_calls, login_lacks, neighbours,
        find, why, why_of, why_host, stuck, crawl_lacks, persona_lacks,
        why_webhook, why_schedule, feed_entries, search, search_query, search_names, search_window,
        texts_missing, thumbnail,
        page_history, page_neighbours, sites_of, periods_of, curve, attention,
        crawl_snapshots, crawl_entries, crawl_seeds, crawl_next,
        next_work,
        work_left, crawl_unfinished, sealed_files, directories_unknown, metrics, worker_metrics, hook_cost,
        check_invariants, reference, answer_columns, snapshot_text, schedule_find, schedule_next,
        schedule_times, crawls_expired, unchanged_spare, archive_full, archive_bytes, bytes_taken,
        schema_minimum, token_check, tokens_valid, files_key_valid, accounts_exist, own_tokens,
        captures, captures_count, has_whole,
        captures_closest, captures_of, capture_in,
        export_snapshots, snapshot_number,
        replay_score, replays_due, originals_of, revisits_broken, mementos, memento_of, memento_at, noise_of,
        shelf_find, shelf_pages, shelf_has, shelf_entries, shelves, shelves_of, share_open, share_directory,
        list_snapshots, list_sites, list_results, list_failures, list_events, list_events_after,
        page_due_latest}'),
      ('holdfast_worker', true, '{
        process_join, worker_able, worker_heartbeat, worker_hooks, worker_turn, process_leave, process_gone,
        lapse_process, archive_begun, crawl_claim, crawl_expand,
        crawl_release, crawl_stop_step, crawl_judge_step, session_open, session_set, binary_want,
        binary_claim, binary_set, binary_known, machine_set_options, machine_options,
        runner_enter, runner_heartbeat, runner_leave, runner_maintenance, local_processes, workers_beside,
        newer_run, host_rate_limited, robots_get,
        robots_put, purge_fill, purge_list, purge_done, captures_to_move, captures_moved,
        captures_stored, fingerprint_get, recapture_get,
        crawl_pages_stale, crawl_page_made, clock_check, persona_load, persona_keep,
        persona_signed_out,
        webhook_claim, webhook_report, webhook_release, webhook_wait, text_keep, texts_lost,
        sign_in_take, sign_in_ready, sign_in_check, sign_in_end}'),
      ('holdfast_operator', true, '{
        crawl_add, crawl_add_seeds, seeds_archived, crawl_options, crawl_stop_step, crawl_keep,
        schedule_add, schedule_enable, schedule_remove, schedule_run, watch_relearn, webhook_remove,
        log_level_set,
        binary_recheck, process_present, process_left, text_keep, texts_drop, replay_judged, archive_begun,
        shelf_remove, import_check, import_pages, api_request_once, persona_remove, crawl_judge_step,
        sign_in_cancel, account_ask}')) e(roles, as_owner, names)
  union all
  select p.proname, 'holdfast_reader, holdfast_operator, holdfast_worker', false
    from pg_catalog.pg_proc p
    where p.pronamespace = 'holdfast'::regnamespace and p.proname like 'list\_%'
  union all -- A command is told who gives it.
  select p.proname, 'holdfast_operator', true
    from pg_catalog.pg_proc p
    where p.pronamespace = 'holdfast'::regnamespace and 'p_by' = any (p.proargnames)
$$;

create or replace function holdfast.make_roles()
  returns text language plpgsql as $$
-- Creates missing roles, and lets their creator act as them. Returns the statements that it may not run
-- itself; NULL: all roles exist.
declare
  -- From PostgreSQL 16 on, the maker is a member that may not.
  c_to_me constant text := 'grant %I to current_user'
    || case when current_setting('server_version_num')::integer >= 160000 then ' with set true' else '' end;
  v_role text;
  v_left text;
begin
  foreach v_role in array '{holdfast_reader, holdfast_operator, holdfast_worker, holdfast_serve,
                          holdfast_owner}'::text[] loop
    begin
      if to_regrole(v_role) is null then
        execute format('create role %I nologin', v_role);
        execute format(c_to_me, v_role);
      end if;
    exception
      -- Another database of this server is being migrated.
      when duplicate_object or unique_violation then null;
      when insufficient_privilege then v_left := concat_ws(' ', v_left, format('create role %I nologin;', v_role));
    end;
  end loop;
  return v_left;
end $$;

create or replace function holdfast.readable()
  returns setof oid language sql stable as $$
  -- Relations that every role may select from.
  select c.oid
    from pg_catalog.pg_class c
    where c.relnamespace = 'holdfast'::regnamespace
      and (c.relkind = 'v' and c.relname like 'v\_%'
           or c.relname in ('collection', 'lifecycle_edge', 'schema_migration'))
$$;

create or replace function holdfast.grants_differ()
  returns boolean language sql stable as $$
  -- Returns whether the roles have rights that they should not have.
  with used(role) as (values ('holdfast_reader'), ('holdfast_operator'), ('holdfast_worker')),
  entry as (
    select p.oid, p.proacl, p.prosecdef, p.proconfig, coalesce(bool_or(e.as_owner), false) as as_owner,
           coalesce(string_agg(e.roles, ', '), '') as roles
      from pg_catalog.pg_proc p
      left join holdfast.entry_points() e on e.name = p.proname
      where p.pronamespace = 'holdfast'::regnamespace and p.prokind = 'f'
      group by p.oid)
  select not has_schema_privilege('holdfast_owner', 'holdfast', 'create')
         or exists (select from used where not has_schema_privilege(role, 'holdfast', 'usage'))
         or exists (select from holdfast.readable() v cross join used
                      where not has_table_privilege(role, v, 'select'))
         or exists (select from pg_catalog.pg_class c
                      where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('r', 'p', 'v')
                        and not has_table_privilege('holdfast_owner', c.oid, 'select, insert, update, delete'))
         or exists (select from entry
                      where proacl is null -- everyone may call it
                         or as_owner and not (prosecdef
                                              and proconfig @> array['search_path=holdfast, pg_temp'])
                         or not has_function_privilege('holdfast_owner', oid, 'execute'))
         or exists (select from entry cross join used
                      where has_function_privilege(role, oid, 'execute')
                            <> (role = any (string_to_array(roles, ', '))))
$$;

create or replace function holdfast.grant_roles()
  returns text language plpgsql as $$
-- Corrects the roles and their grants; may be repeated. Returns the statements that need more rights; NULL:
-- none.
declare
  c_everybody constant text := 'holdfast_reader, holdfast_operator, holdfast_worker';
  v_left text;
  v_table oid;
  v_one record;
begin
  perform pg_advisory_xact_lock(x'686F6C6466617374'::bigint); -- as the migrator does
  v_left := holdfast.make_roles();
  if v_left is not null then return v_left; end if;
  if not holdfast.grants_differ() then return null; end if;
  execute 'revoke all on schema holdfast from public';
  execute 'grant usage on schema holdfast to ' || c_everybody;
  execute 'grant all on schema holdfast to holdfast_owner';
  execute 'grant all on all tables in schema holdfast to holdfast_owner';
  execute 'grant all on all sequences in schema holdfast to holdfast_owner';
  execute 'grant all on all functions in schema holdfast to holdfast_owner';
  execute 'revoke all on all functions in schema holdfast from public, ' || c_everybody;
  execute 'revoke all on all tables in schema holdfast from public, ' || c_everybody;
  for v_table in select * from holdfast.readable() loop
    execute format('grant select on %s to %s', v_table::regclass, c_everybody);
  end loop;
  for v_one in
    select p.oid::regprocedure as name, bool_or(e.as_owner) as as_owner, string_agg(e.roles, ', ') as roles
      from pg_catalog.pg_proc p
      join holdfast.entry_points() e on e.name = p.proname
      where p.pronamespace = 'holdfast'::regnamespace and p.prokind = 'f'
      group by p.oid
  loop
    if v_one.as_owner then
      execute format('alter function %s security definer set search_path = holdfast, pg_temp', v_one.name);
    end if;
    execute format('grant execute on function %s to %s', v_one.name, v_one.roles);
  end loop;
  return null;
end $$;
revoke all on function holdfast.grant_roles() from public;

create or replace function holdfast.neighbours()
  returns table (why text, statement text) language sql stable as $$
  select 'the collections in ' || n.names || ' have the same roles, so that their logins can read this one and their '
         'workers can join it. Grant connect to its readers, too',
         format('revoke connect on database %1$I from public; grant connect on database %1$I to %2$s;', d.datname,
                (select string_agg(quote_ident(r.rolname), ', ')
                   from pg_catalog.pg_roles r
                   where r.oid = d.datdba or r.rolname in (select p.login from holdfast.process p)))
    from pg_catalog.pg_database d
    cross join lateral (select string_agg(o.datname, ', ' order by o.datname) as names
                          from pg_catalog.pg_database o
                          where o.oid <> d.oid
                            and exists (select
                                          from pg_catalog.pg_shdepend s
                                          where s.dbid = o.oid and s.refclassid = 'pg_authid'::regclass
                                            and s.refobjid = to_regrole('holdfast_reader'))) n
    where d.datname = current_database() and n.names is not null
      and exists (select
                    from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
                    where a.grantee = 0 and a.privilege_type = 'CONNECT')
$$;
comment on function holdfast.neighbours is
  'Returns a row if logins of another collection on this server may connect to this database, and the way out.';

create or replace function holdfast.complete()
  returns table (what text, why text, statement text) language plpgsql as $$
-- Brings what lies outside the tables to what it should be. Returns what cannot be had, and the statements
-- with which an administrator of the server makes it.
declare
  v_left text := holdfast.grant_roles();
begin
  -- No login can have used a collection that is new.
  if exists (select from holdfast.neighbours())
     and not exists (select from holdfast.process) and not exists (select from holdfast.crawl)
     and (select pg_has_role(d.datdba, 'usage') from pg_catalog.pg_database d where d.datname = current_database())
  then
    execute format('revoke connect on database %I from public', current_database());
  end if;
  return query select 'a database of its own', n.why, n.statement from holdfast.neighbours() n;
  if v_left is not null then
    return query select 'roles', current_user || ' may not create them (CREATEROLE), and nothing is granted', v_left;
  end if;
  v_left := holdfast.index_urls();
  if v_left is not null then
    return query select 'an index of parts of URLs', v_left, 'create extension pg_trgm schema public;';
  end if;
end $$;

do $$ begin perform holdfast.grant_roles(); end $$;
