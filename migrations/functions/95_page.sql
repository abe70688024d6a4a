-- Pages of a URL, sites, and the sums of hours and days.

create or replace function holdfast.page_history(p_url text, p_before uuid, p_limit bigint)
  returns table (id uuid, title text, at timestamptz, outcome text, reason text, change text, share numeric,
                 words_added bigint, words_removed bigint, http_status bigint, bytes bigint, directory text,
                 thumbnail text, captures bigint) language sql stable as $$
  -- Returns sealed captures of a URL, the latest first. p_before: only those before this one.
  with all_of as materialized (
    select s.id, s.crawl_id, coalesce(e.started_at, e.sealed_at) as at
      from holdfast.snapshot s
      join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
      where s.url_hash = sha256(convert_to(p_url, 'UTF8')) and e.outcome <> 'cancelled'
  ), page as (
    select a.*, count(*) over () as captures
      from all_of a
      where p_before is null or (a.at, a.id) < (select b.at, b.id from all_of b where b.id = p_before)
      order by a.at desc, a.id desc limit p_limit
  )
  select v.id, v.title, p.at, v.outcome, v.reason, v.change, (v.facts ->> 'change_share')::numeric,
         v.words_added, v.words_removed, v.http_status, v.bytes, v.directory,
         holdfast.thumbnail(v.id, v.crawl_id, v.fence), p.captures
    from page p
    join holdfast.v_snapshot v on v.id = p.id and v.crawl_id = p.crawl_id
    order by p.at desc, p.id desc
$$;
comment on function holdfast.page_history is
  'Sealed captures of a URL, the latest first, and how many there are.';

create or replace function holdfast.page_neighbours(p_snapshot uuid)
  returns table (previous uuid, next uuid, captures bigint) language sql stable as $$
  -- Returns the captures of the same URL before and after this one; no row if it is not sealed.
  select o.previous, o.next, o.captures
    from (select s.id, lag(s.id) over w as previous, lead(s.id) over w as next, count(*) over () as captures
            from holdfast.snapshot s
            join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
            where s.url_hash = (select o.url_hash from holdfast.snapshot o where o.id = p_snapshot limit 1)
              and e.outcome <> 'cancelled'
            window w as (order by coalesce(e.started_at, e.sealed_at), s.id)) o
    where o.id = p_snapshot
$$;
comment on function holdfast.page_neighbours is 'The captures of the same URL before and after a snapshot.';

create or replace function holdfast.seals_after(p_what text, p_batch bigint, p_lag interval)
  returns table (snapshot_id uuid, crawl_id uuid, host text, url_hash bytea, outcome text, bytes bigint,
                 changed boolean, seconds numeric, sealed_at timestamptz) language sql stable as $$
  -- Returns the next seals that are not in these sums yet, in their order.
  select e.snapshot_id, e.crawl_id, s.host, s.url_hash, e.outcome, holdfast.bytes_taken(e.bytes, e.facts),
         e.facts ->> 'change' not in ('first', 'same'),
         extract(epoch from e.sealed_at - coalesce(e.started_at, e.sealed_at)), e.sealed_at
    from holdfast.snapshot_sealed e
    join holdfast.snapshot s on s.id = e.snapshot_id and s.crawl_id = e.crawl_id
    where e.sealed_at > (select c.upto from holdfast.counted c where c.what = p_what)
      and e.sealed_at <= statement_timestamp() - p_lag
      and e.outcome <> 'cancelled'
    order by e.sealed_at limit p_batch
$$;
comment on function holdfast.seals_after is
  'The next seals that are not in the sums of sites or periods yet.';

create or replace function holdfast.sites_of(p_batch bigint, p_lag interval)
  returns table (host text, pages bigint, captures bigint, failed bigint, bytes numeric, last_at timestamptz,
                 changed_at timestamptz, upto timestamptz) language sql stable as $$
  -- Sums the next seals by host. A page counts once, with the first of its captures.
  select n.host, count(distinct n.url_hash) filter (where not exists (
           select from holdfast.snapshot s
             join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
             where s.url_hash = n.url_hash and e.outcome <> 'cancelled'
               and e.sealed_at <= (select c.upto from holdfast.counted c where c.what = 'sites'))),
         count(*), count(*) filter (where n.outcome not in ('succeeded', 'partial')), sum(n.bytes),
         max(n.sealed_at), max(n.sealed_at) filter (where n.changed), max(max(n.sealed_at)) over ()
    from holdfast.seals_after('sites', p_batch, p_lag) n
    group by n.host
$$;
comment on function holdfast.sites_of is 'Sums of the seals that are not in the table of sites yet, by host.';

create or replace function holdfast.maintenance_sites(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- Counts seals once they are a minute old: a transaction that is open now may still commit an earlier one.
declare
  v_count bigint;
begin
  perform from holdfast.counted c where c.what = 'sites' for update;
  with new as materialized (
    select * from holdfast.sites_of(p_task.batch, '1 minute')
  ), moved as (
    update holdfast.counted c set upto = n.upto from (select max(upto) as upto from new) n
      where c.what = 'sites' and n.upto is not null
  ), stored as (
    insert into holdfast.site as t
      select host, pages, captures, failed, bytes, last_at, changed_at from new order by host
      on conflict (host) do update
        set pages = t.pages + excluded.pages, captures = t.captures + excluded.captures,
            failed = t.failed + excluded.failed, bytes = t.bytes + excluded.bytes,
            last_at = greatest(t.last_at, excluded.last_at),
            changed_at = greatest(t.changed_at, excluded.changed_at)
      returning 1
  )
  select count(*) into v_count from stored;
  return v_count;
end $$;

create or replace function holdfast.sites_recount(p_crawl uuid, p_snapshot uuid, p_sign integer)
  returns void language plpgsql as $$
-- Takes the captures of a crawl, or one of them, out of the sums before they are removed (p_sign -1), or adds
-- one that was stored with an old time (1).
declare
  c_upto constant timestamptz := (select c.upto from holdfast.counted c where c.what = 'sites' for share);
  v_site record;
begin
  for v_site in
    select s.host, count(*) as captures, sum(holdfast.bytes_taken(e.bytes, e.facts)) as bytes,
           max(e.sealed_at) as last_at,
           count(distinct s.url_hash) filter (where not exists (
             select from holdfast.snapshot o
               join holdfast.snapshot_sealed x on x.snapshot_id = o.id and x.crawl_id = o.crawl_id
               where o.url_hash = s.url_hash and x.outcome <> 'cancelled' and x.sealed_at <= c_upto
                 and not (o.crawl_id = p_crawl and o.id = coalesce(p_snapshot, o.id)))) as pages,
           count(*) filter (where e.outcome not in ('succeeded', 'partial')) as failed
      from holdfast.snapshot s
      join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
      where s.crawl_id = p_crawl and s.id = coalesce(p_snapshot, s.id) and e.outcome <> 'cancelled'
        and e.sealed_at <= c_upto
      group by s.host order by s.host
  loop
    delete from holdfast.site t where t.host = v_site.host and p_sign < 0 and t.captures <= v_site.captures;
    if found then continue; end if;
    update holdfast.site t
      set pages = greatest(t.pages + p_sign * v_site.pages, 0),
          captures = t.captures + p_sign * v_site.captures,
          failed = greatest(t.failed + p_sign * v_site.failed, 0), bytes = t.bytes + p_sign * v_site.bytes,
          last_at = greatest(t.last_at, v_site.last_at)
      where t.host = v_site.host;
    if found or p_sign < 0 then continue; end if;
    insert into holdfast.site
      values (v_site.host, v_site.pages, v_site.captures, v_site.failed, v_site.bytes, v_site.last_at);
  end loop;
end $$;
comment on function holdfast.sites_recount is
  'Corrects the sums of sites for snapshots that go or come with old times.';

create or replace view holdfast.v_site as
  select coalesce(t.host, n.host) as host, coalesce(t.pages, 0) + coalesce(n.pages, 0) as pages,
         coalesce(t.captures, 0) + coalesce(n.captures, 0) as captures,
         coalesce(t.failed, 0) + coalesce(n.failed, 0) as failed,
         coalesce(t.bytes, 0) + coalesce(n.bytes, 0) as bytes, greatest(t.last_at, n.last_at) as last_at,
         greatest(t.changed_at, n.changed_at) as changed_at,
         coalesce(h.reason, case when h.paused then 'paused' end) as trouble
    from holdfast.site t
    full join holdfast.sites_of(500, '0') n on n.host = t.host
    left join holdfast.host h
      on h.name = coalesce(t.host, n.host) and (h.paused or h.backoff_until > statement_timestamp());
comment on view holdfast.v_site is 'Hosts with archived pages.';
comment on column holdfast.v_site.host is 'The host.';
comment on column holdfast.v_site.pages is 'Different URLs.';
comment on column holdfast.v_site.captures is 'Sealed snapshots.';
comment on column holdfast.v_site.failed is 'Captures with another outcome than succeeded and partial.';
comment on column holdfast.v_site.bytes is 'Bytes of their files. Links to files of an earlier capture do not count.';
comment on column holdfast.v_site.last_at is 'Time of the last capture.';
comment on column holdfast.v_site.changed_at is 'Time of the last capture that found a change; NULL: none.';
comment on column holdfast.v_site.trouble is
  'Why its pages wait now: back-off, or a pause. NULL: they do not.';

create or replace function holdfast.list_sites(p_url text, p_limit bigint)
  returns setof holdfast.v_site language sql stable as $$
  -- The sites of the view that can be among the first: an index finds those of the table.
  with recent as materialized (
    select * from holdfast.sites_of(500, '0')
  ), found as (
    select t.host
      from (select o.host
              from holdfast.site o
              where p_url is null or holdfast.has_part(o.host, p_url)
              order by o.last_at desc limit p_limit) t
    union
    select n.host from recent n where p_url is null or holdfast.has_part(n.host, p_url)
  )
  select f.host, coalesce(t.pages, 0) + coalesce(n.pages, 0),
         coalesce(t.captures, 0) + coalesce(n.captures, 0),
         coalesce(t.failed, 0) + coalesce(n.failed, 0), coalesce(t.bytes, 0) + coalesce(n.bytes, 0),
         greatest(t.last_at, n.last_at), greatest(t.changed_at, n.changed_at),
         coalesce(h.reason, case when h.paused then 'paused' end)
    from found f
    left join holdfast.site t on t.host = f.host
    left join recent n on n.host = f.host
    left join holdfast.host h on h.name = f.host and (h.paused or h.backoff_until > statement_timestamp())
    order by 6 desc, 1 limit p_limit
$$;
comment on function holdfast.list_sites is 'Sites: holdfast list sites.';

create or replace function holdfast.periods_of(p_batch bigint, p_lag interval)
  returns table (grain text, at timestamptz, succeeded bigint, partial bigint, failed bigint, changed bigint,
                 bytes numeric, seconds numeric, queue bigint, upto timestamptz) language sql stable as $$
  -- Sums the next seals by hour and by day.
  select g.grain, date_trunc(g.grain, n.sealed_at, 'UTC') as at,
         count(*) filter (where n.outcome = 'succeeded'), count(*) filter (where n.outcome = 'partial'),
         count(*) filter (where n.outcome not in ('succeeded', 'partial')), count(*) filter (where n.changed),
         sum(n.bytes), sum(n.seconds), 0::bigint, max(max(n.sealed_at)) over ()
    from holdfast.seals_after('periods', p_batch, p_lag) n
    cross join (values ('hour'), ('day')) g(grain)
    group by g.grain, date_trunc(g.grain, n.sealed_at, 'UTC')
$$;
comment on function holdfast.periods_of is
  'Sums of the seals that are not in the table of periods yet, by hour and day.';

create or replace function holdfast.maintenance_periods(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- Counts as maintenance_sites() does. The row of the present hour also has the length of the queue.
declare
  v_count bigint;
begin
  perform from holdfast.counted c where c.what = 'periods' for update;
  with new as materialized (
    select * from holdfast.periods_of(p_task.batch, '1 minute')
    union all
    select g.grain, date_trunc(g.grain, statement_timestamp(), 'UTC'), 0, 0, 0, 0, 0, 0, s.snapshots_open, null
      from holdfast.v_status s
      cross join (values ('hour'), ('day')) g(grain)
      where s.snapshots_open > 0
  ), moved as (
    update holdfast.counted c set upto = n.upto from (select max(upto) as upto from new) n
      where c.what = 'periods' and n.upto is not null
  ), stored as (
    insert into holdfast.period as t
      select n.grain, n.at, sum(n.succeeded), sum(n.partial), sum(n.failed), sum(n.changed), sum(n.bytes),
             sum(n.seconds), max(n.queue)
        from new n
        group by n.grain, n.at order by n.grain, n.at
      on conflict (grain, at) do update
        set succeeded = t.succeeded + excluded.succeeded, partial = t.partial + excluded.partial,
            failed = t.failed + excluded.failed, changed = t.changed + excluded.changed,
            bytes = t.bytes + excluded.bytes, seconds = t.seconds + excluded.seconds,
            queue = greatest(t.queue, excluded.queue)
      returning t.succeeded
  )
  select count(*) into v_count from stored;
  delete from holdfast.period t
    where t.grain = 'hour' and t.at < statement_timestamp() - p_task.keep;
  return v_count;
end $$;

create or replace view holdfast.v_period as
  select n.grain, n.at, sum(n.succeeded)::bigint as succeeded, sum(n.partial)::bigint as partial,
         sum(n.failed)::bigint as failed, sum(n.changed)::bigint as changed, sum(n.bytes) as bytes,
         trim_scale(round(sum(n.seconds) / nullif(sum(n.succeeded + n.partial + n.failed), 0), 3))
           as seconds_a_page,
         max(n.queue) as queue
    from (select t.* from holdfast.period t
          union all
          select p.grain, p.at, p.succeeded, p.partial, p.failed, p.changed, p.bytes, p.seconds, p.queue
            from holdfast.periods_of(500, '0') p) n
    group by n.grain, n.at;
comment on view holdfast.v_period is
  'Sums of each hour (of the last forty days) and each day, in UTC. Removed pages stay in them.';
comment on column holdfast.v_period.grain is 'hour or day.';
comment on column holdfast.v_period.at is 'Start of the hour or day.';
comment on column holdfast.v_period.succeeded is 'Sealed snapshots with the outcome succeeded.';
comment on column holdfast.v_period.partial is 'With outcome partial.';
comment on column holdfast.v_period.failed is 'With any other outcome.';
comment on column holdfast.v_period.changed is 'Captures that found a change.';
comment on column holdfast.v_period.bytes is 'Bytes of their files.';
comment on column holdfast.v_period.seconds_a_page is 'Mean time between claim and seal.';
comment on column holdfast.v_period.queue is 'Most open snapshots that the runner counted, once a minute.';

create or replace function holdfast.curve(p_grain text, p_width interval, p_bars integer)
  returns table (at timestamptz, succeeded bigint, partial bigint, failed bigint, changed bigint,
                 bytes numeric, seconds numeric, queue bigint) language sql stable as $$
  -- Returns p_bars sums of p_width each, the last one with the present time; empty ones have zeros.
  select b.at, coalesce(sum(v.succeeded), 0)::bigint, coalesce(sum(v.partial), 0)::bigint,
         coalesce(sum(v.failed), 0)::bigint, coalesce(sum(v.changed), 0)::bigint, coalesce(sum(v.bytes), 0),
         coalesce(round(sum(v.seconds_a_page * (v.succeeded + v.partial + v.failed))
                        / nullif(sum(v.succeeded + v.partial + v.failed), 0), 2), 0),
         coalesce(max(v.queue), 0)
    from (select date_trunc(p_grain, statement_timestamp(), 'UTC') - p_width * (p_bars - 1 - i)
                 - case when p_grain = 'day' then p_width - interval '1 day' else '0' end as at
            from generate_series(0, p_bars - 1) i) b
    left join holdfast.v_period v
      on v.grain = p_grain and v.at >= b.at and v.at < b.at + p_width
    group by b.at order by b.at
$$;
comment on function holdfast.curve is 'Sums of hours or days for a curve.';

create or replace function holdfast.attention(p_limit bigint)
  returns table (kind text, id text, name text, what text, reason text, since timestamptz, count bigint)
  language sql stable as $$
  -- Returns the causes that need a person, one row for each, the oldest first: what is stuck, personas that
  -- are signed out, and hosts whose pages failed within a day.
  select * from (
    (select min(s.kind) as kind, min(s.id::text) as id, min(s.name) as name, s.what, s.reason,
            min(s.since) as since,
            -- A problem with one reason counts all of its objects; else only the oldest are known.
            case when count(*) = least(max(s.number), 5) then max(s.number) else count(*) end as count
       from holdfast.stuck(5) s
       group by s.what, s.reason)
    union all
    (select 'persona', p.name, p.name, 'signed out', p.signed_out_reason, p.signed_out_at, 1
       from holdfast.v_persona p
       where p.signed_out_at is not null)
    union all
    (select 'host', s.host, s.host, 'pages failed', (array_agg(e.reason order by e.sealed_at desc))[1],
            min(e.sealed_at), count(*)
       from (select x.*
               from holdfast.snapshot_sealed x
               where x.outcome = 'failed'
                 and x.snapshot_id >= holdfast.first_id(statement_timestamp() - interval '1 day')
               order by x.snapshot_id desc limit 1000) e
       join holdfast.snapshot s on s.id = e.snapshot_id and s.crawl_id = e.crawl_id
       group by s.host)) a
    order by a.kind = 'host', a.since limit p_limit
$$;
comment on function holdfast.attention is 'Causes that need a person, one row each.';
