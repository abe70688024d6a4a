-- Lists for the command line: the views with the usual filters. NULL: no filter. A filter that a list does not know is an
-- argument that its function does not have.

create or replace function holdfast.list_crawls(p_crawl uuid, p_status text, p_url text, p_tag text, p_limit bigint) returns setof holdfast.v_crawl language sql stable as $$
  select * from holdfast.v_crawl
    where (p_crawl is null or id = p_crawl)
      and (p_status is null or status = p_status)
      and (p_url is null or position(lower(p_url) in lower(first_url)) > 0)
      and (p_tag is null or p_tag = any (tags))
    order by created_at desc limit p_limit
$$;
comment on function holdfast.list_crawls(uuid, text, text, text, bigint) is 'Crawls, filtered: holdfast list crawls.';

create or replace function holdfast.list_snapshots(p_crawl uuid, p_snapshot uuid, p_status text, p_url text, p_tag text, p_limit bigint) returns setof holdfast.v_snapshot language sql stable as $$
  select * from holdfast.v_snapshot
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_snapshot is null or id = p_snapshot)
      and (p_status is null or status = p_status)
      and (p_url is null or position(lower(p_url) in lower(url)) > 0)
      and (p_tag is null or p_tag = any (tags))
    order by id desc limit p_limit
$$;
comment on function holdfast.list_snapshots(uuid, uuid, text, text, text, bigint) is 'Snapshots, filtered: holdfast list snapshots.';

create or replace function holdfast.list_results(p_crawl uuid, p_snapshot uuid, p_status text, p_url text, p_limit bigint) returns setof holdfast.v_result
  language plpgsql stable set enable_mergejoin = off set enable_hashjoin = off as $$
-- Ids are in the order of time, and an index has them: those of a crawl are found by its snapshots, all others by the results. A merge
-- would read the results of all crawls.
begin
  if p_crawl is not null and p_snapshot is null then
    return query
      select v.* from holdfast.snapshot s
        cross join lateral (select * from holdfast.v_result r where r.snapshot_id = s.id and r.crawl_id = s.crawl_id
                              and (p_status is null or r.status = p_status) and (p_url is null or position(lower(p_url) in lower(r.url)) > 0)) v
        where s.crawl_id = p_crawl order by s.id desc, v.started_at desc limit p_limit;
  else
    return query
      select * from holdfast.v_result
        where (p_crawl is null or crawl_id = p_crawl)
          and (p_snapshot is null or snapshot_id = p_snapshot)
          and (p_status is null or status = p_status)
          and (p_url is null or position(lower(p_url) in lower(url)) > 0)
        order by snapshot_id desc, started_at desc limit p_limit;
  end if;
end $$;
comment on function holdfast.list_results(uuid, uuid, text, text, bigint) is 'Results, filtered: holdfast list results.';

create or replace function holdfast.list_queue(p_crawl uuid, p_snapshot uuid, p_status text, p_url text, p_limit bigint) returns setof holdfast.v_queue language sql stable as $$
  select * from holdfast.v_queue
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_snapshot is null or id = p_snapshot)
      and (p_status is null or status = p_status)
      and (p_url is null or position(lower(p_url) in lower(url)) > 0)
    order by retry_at limit p_limit
$$;
comment on function holdfast.list_queue(uuid, uuid, text, text, bigint) is 'Queue, filtered: holdfast list queue.';

create or replace function holdfast.list_running(p_crawl uuid, p_snapshot uuid, p_url text, p_limit bigint) returns setof holdfast.v_running language sql stable as $$
  select * from holdfast.v_running
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_snapshot is null or snapshot_id = p_snapshot)
      and (p_url is null or position(lower(p_url) in lower(url)) > 0)
    order by running_for desc limit p_limit
$$;
comment on function holdfast.list_running(uuid, uuid, text, bigint) is 'Running, filtered: holdfast list running.';

create or replace function holdfast.list_nodes(p_status text, p_limit bigint) returns setof holdfast.v_node language sql stable as $$
  select * from holdfast.v_node
    where (p_status is null or status = p_status)
    order by started_at desc limit p_limit
$$;
comment on function holdfast.list_nodes(text, bigint) is 'Nodes, filtered: holdfast list nodes.';

create or replace function holdfast.list_events(p_crawl uuid, p_snapshot uuid, p_limit bigint) returns setof holdfast.v_event language sql stable as $$
  select * from holdfast.v_event
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_snapshot is null or object_id = p_snapshot)
    order by id desc limit p_limit
$$;
comment on function holdfast.list_events(uuid, uuid, bigint) is 'Events, filtered: holdfast list events.';

create or replace function holdfast.list_failures(p_crawl uuid, p_snapshot uuid, p_url text, p_limit bigint) returns setof holdfast.v_failure language sql stable as $$
  select * from holdfast.v_failure
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_snapshot is null or snapshot_id = p_snapshot)
      and (p_url is null or position(lower(p_url) in lower(url)) > 0)
    order by ended_at desc limit p_limit
$$;
comment on function holdfast.list_failures(uuid, uuid, text, bigint) is 'Failures, filtered: holdfast list failures.';

create or replace function holdfast.list_hosts(p_url text, p_limit bigint) returns setof holdfast.v_host language sql stable as $$
  select * from holdfast.v_host
    where (p_url is null or position(lower(p_url) in lower(name)) > 0)
    order by name limit p_limit
$$;
comment on function holdfast.list_hosts(text, bigint) is 'Hosts, filtered: holdfast list hosts.';

create or replace function holdfast.list_sessions(p_crawl uuid, p_status text, p_limit bigint) returns setof holdfast.v_session language sql stable as $$
  select * from holdfast.v_session
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_status is null or status = p_status)
    order by opened_at desc limit p_limit
$$;
comment on function holdfast.list_sessions(uuid, text, bigint) is 'Crawl sessions, filtered: holdfast list sessions.';
