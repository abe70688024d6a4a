-- How PostgreSQL plans the statements of functions whose plan must not depend on luck. What they call is
-- planned in the same way; all other functions have the settings of the server.
--
-- found_by_index  In the loops of workers, and where records of others are looked up. A session plans a
--                 statement once, perhaps while the tables are empty, and keeps that plan when they are full:
--                 so no table may be read whole, and rows are taken from an index one by one, in its order:
--                 often the first will do, and a sort would be repeated for each batch of seeds.
--                 A disabled scan that is unavoidable looks expensive enough to trigger JIT, hence jit = off.
-- by_arguments    A word is in few rows or in all: each call is planned for its arguments. To compile such a
--                 plan takes longer than to run it. While tables are not analysed, the planner would look for
--                 newer captures of a hit in the texts of all pages.
do $$
declare
  v_kind record;
  v_name text;
begin
  for v_kind in
    select k.names::text[] as names, k.settings
      from (values
        ('{worker_turn, worker_heartbeat, worker_hooks, lapse_process, crawl_expand, crawl_stop_step,
          captures_stored, text_keep, snapshot_remove, crawl_remove}',
         'set enable_seqscan = off set enable_bitmapscan = off set jit = off '
         'set plan_cache_mode = force_generic_plan'),
        ('{search}', 'set jit = off set plan_cache_mode = force_custom_plan set enable_seqscan = off'))
        k(names, settings)
  loop
    foreach v_name in array v_kind.names loop
      execute format('alter function %s %s', ('holdfast.' || v_name)::regproc, v_kind.settings);
    end loop;
  end loop;
end $$;
