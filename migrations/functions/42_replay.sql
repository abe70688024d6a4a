-- Replay: the snapshots of a URL by time, and how well they replay.

create or replace function holdfast.mementos(p_url text)
  returns table (id uuid, at bigint) language sql stable as $$
  select s.id, floor(extract(epoch from coalesce(e.started_at, e.sealed_at)))::bigint
    from holdfast.snapshot s
    join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where s.url_hash = sha256(convert_to(p_url, 'UTF8')) and e.outcome in ('succeeded', 'partial')
    order by 2, 1
$$;
comment on function holdfast.mementos is
  'Returns the snapshots of a URL that show it, from the oldest to the latest, with seconds since 1970.';

create or replace function holdfast.memento_at(p_url text, p_at timestamptz)
  returns uuid language sql stable as $$
  select m.id
    from holdfast.mementos(p_url) m
    cross join (select floor(extract(epoch from p_at)) as at) x
    order by m.at <= x.at desc, abs(m.at - x.at), case when m.at <= x.at then m.id end desc, m.id limit 1
$$;
comment on function holdfast.memento_at is
  'Returns the snapshot of a URL that shows what it was at a time: the last one until then; without one, the first.';

create or replace function holdfast.memento_of(p_snapshot uuid)
  returns table (url text) language sql stable as $$
  select s.url from holdfast.snapshot s where s.id = p_snapshot limit 1
$$;
comment on function holdfast.memento_of is 'Returns the URL of a snapshot.';

create or replace view holdfast.v_replay_quality as
  select q.snapshot_id, q.crawl_id, s.url,
         case when q.problem = '' then least(q.screenshot, q.text, q.resources) else 0 end as score,
         q.screenshot, q.text, q.resources, q.missing, q.problem, q.at
    from holdfast.replay_quality q
    join holdfast.snapshot s on s.id = q.snapshot_id;
comment on view holdfast.v_replay_quality is
  'Snapshots that were opened from their WARC files, by holdfast verify --replay or by capture.check: how well '
  'they replay.';
comment on column holdfast.v_replay_quality.url is 'URL of the snapshot.';
comment on column holdfast.v_replay_quality.score is
  'Smallest of screenshot, text and resources; 0: could not be replayed.';
comment on column holdfast.v_replay_quality.screenshot is
  'Share of equal pixels of the screenshots; NULL: there is none.';
comment on column holdfast.v_replay_quality.text is
  'Share of equal words of the pages; NULL: the capture saved no page.';
comment on column holdfast.v_replay_quality.resources is
  'Share of the URLs that were loaded in both; NULL: the browser recorded none.';

create or replace view holdfast.v_capture_quality as
  select e.snapshot_id, e.crawl_id, s.url, s.host, e.outcome, e.sealed_at,
         holdfast.fact_integer(e.facts, 'resources') as resources,
         holdfast.fact_integer(e.facts, 'resources_missing') as resources_missing,
         e.facts -> 'missing_reasons' as missing_reasons,
         coalesce(1 - holdfast.fact_integer(e.facts, 'resources_missing')::real
                        / nullif(holdfast.fact_integer(e.facts, 'resources'), 0), 1) as share
    from holdfast.snapshot_sealed e
    join holdfast.snapshot s on s.id = e.snapshot_id and s.crawl_id = e.crawl_id
    where e.facts ? 'resources';
comment on view holdfast.v_capture_quality is
  'Completeness of the records of sealed snapshots, as counted by each capture. With resources_missing > 0, the '
  'record is incomplete.';
comment on column holdfast.v_capture_quality.url is 'URL of the snapshot.';
comment on column holdfast.v_capture_quality.host is 'Host of the URL.';
comment on column holdfast.v_capture_quality.outcome is 'Outcome of the snapshot.';
comment on column holdfast.v_capture_quality.resources is 'URLs that the page requested or names.';
comment on column holdfast.v_capture_quality.resources_missing is
  'Resources that are not in the record, or not complete.';
comment on column holdfast.v_capture_quality.missing_reasons is 'Number of missing resources by reason.';
comment on column holdfast.v_capture_quality.share is 'Share of the resources that are there.';

create or replace function holdfast.replay_judged(p_snapshot uuid, p_quality jsonb)
  returns real language sql as $$
  -- The score that v_replay_quality shows.
  with kept as (
    insert into holdfast.replay_quality as q (
        snapshot_id, crawl_id, at, screenshot, text, resources, missing, problem)
      select e.snapshot_id, e.crawl_id, clock_timestamp(), n.screenshot, n.text, n.resources,
             coalesce(n.missing, 0), coalesce(n.problem, '')
        from holdfast.snapshot_sealed e
        cross join jsonb_to_record(p_quality)
          as n(screenshot real, text real, resources real, missing integer, problem text)
        where e.snapshot_id = p_snapshot
      on conflict (snapshot_id, crawl_id) do update
        set at = excluded.at, screenshot = excluded.screenshot, text = excluded.text,
            resources = excluded.resources, missing = excluded.missing, problem = excluded.problem
      returning q.*)
  select case when k.problem = '' then least(k.screenshot, k.text, k.resources) else 0 end from kept k
$$;
comment on function holdfast.replay_judged is 'Stores the result of a replay of a sealed snapshot; returns its score.';

create or replace function holdfast.replays_due(p_every integer, p_within interval, p_limit integer)
  returns table (snapshot_id uuid, url text, created_at timestamptz, directory text, manifest_sha256 text)
  language sql stable as $$
  -- Sampled by the last digits of the ids, so that all callers take the same sample. A page without a capture
  -- cannot be replayed.
  select s.id, s.url, s.created_at, e.directory, e.manifest_sha256
    from holdfast.snapshot_sealed e
    join holdfast.snapshot s on s.id = e.snapshot_id and s.crawl_id = e.crawl_id
    where e.sealed_at > statement_timestamp() - p_within
      and ('x' || right(e.snapshot_id::text, 7))::bit(28)::integer % p_every = 0
      and not exists (select
                        from holdfast.replay_quality q
                        where q.snapshot_id = e.snapshot_id and q.crawl_id = e.crawl_id)
      and exists (select
                    from holdfast.capture c
                    where c.snapshot_id = e.snapshot_id and c.crawl_id = e.crawl_id)
    order by e.sealed_at desc limit p_limit
$$;
comment on function holdfast.replays_due is
  'Returns one in p_every of the snapshots sealed within this time that were not replayed: the newest, for holdfast '
  'verify.';

create or replace function holdfast.replay_score(p_snapshot uuid)
  returns real language sql stable as $$
  select v.score from holdfast.v_replay_quality v where v.snapshot_id = p_snapshot limit 1
$$;
comment on function holdfast.replay_score is 'Returns the score of a replay; NULL: not tried.';
