-- Helpers that other functions use. Not for people.

create or replace function holdfast.new_uuid() returns uuid language sql volatile parallel safe as $$
  -- Version 7 (RFC 9562): 48 bits of milliseconds, then random bits; PostgreSQL has its own only from 18 on.
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
          || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
comment on function holdfast.new_uuid() is 'A UUID version 7: ordered by time.';

create or replace function holdfast.retry_at_max() returns timestamptz language sql immutable parallel safe as $$
  select timestamptz '9999-01-01T00:00:00Z'
$$;
comment on function holdfast.retry_at_max() is 'The due time of what is parked.';

create or replace function holdfast.ring() returns void language sql volatile as $$
  -- A doorbell, not a queue: a notifying commit holds one server-wide lock, so it is rung only on the edge from nothing
  -- due to something due. Nodes poll as well.
  select pg_notify('holdfast', 'work')
$$;
comment on function holdfast.ring() is 'Wakes idle nodes.';

create or replace function holdfast.crawl_wake(p_crawl uuid, p_at timestamptz) returns void language plpgsql as $$
-- Somebody put work of this crawl into the queue, due at p_at. Always counts, so that a claim which has just looked in
-- vain does not park the crawl; rings only when the crawl was not ready before.
declare
  v_was timestamptz;
begin
  select ready_at into v_was from holdfast.crawl_queue where crawl_id = p_crawl for update;
  if not found then return; end if;
  update holdfast.crawl_queue set ready_at = least(coalesce(ready_at, p_at), p_at), wakes = wakes + 1 where crawl_id = p_crawl;
  if p_at <= clock_timestamp() and (v_was is null or v_was > clock_timestamp()) then perform holdfast.ring(); end if;
end $$;
comment on function holdfast.crawl_wake(uuid, timestamptz) is 'Makes claims look at a crawl again.';

create or replace function holdfast.crawl_settle(p_crawl uuid) returns boolean language plpgsql as $$
-- Seals the crawl if nothing of it is open. The caller holds the crawl's row lock: without it two last snapshots sealing at
-- once would each see the other open, and the crawl would never end.
begin
  perform set_config('holdfast.event', 'seal', true);
  update holdfast.crawl set status = 'sealed', retry_at = null, reason = null, owner_id = null, sealed_at = clock_timestamp(),
      outcome = case when snapshots_total = 0 then 'empty'
                     when snapshots_failed = 0 and snapshots_partial = 0 then 'succeeded'
                     when snapshots_succeeded = 0 and snapshots_partial = 0 then 'failed'
                     else 'partial' end
    where id = p_crawl and status in ('queued', 'started') and snapshots_open = 0 and seeds_left = 0;
  if not found then return false; end if;
  delete from holdfast.crawl_queue where crawl_id = p_crawl;
  perform pg_notify('holdfast', 'crawl_sealed ' || p_crawl);
  return true;
end $$;
comment on function holdfast.crawl_settle(uuid) is 'Seals a crawl that has nothing open.';

create or replace function holdfast.snapshot_insert(p_crawl uuid, p_parent uuid, p_depth integer, p_urls text[], p_hosts text[],
    p_titles text[], p_tags jsonb) returns bigint language plpgsql set plan_cache_mode = force_custom_plan as $$
-- New snapshots of a crawl, in the order given, each URL once, up to the crawl's cap. The caller holds the crawl's row lock, so
-- "not there yet" and "room left" are exact. Spacing the due times by a microsecond keeps the order without a column for it.
declare
  v_now constant timestamptz := clock_timestamp();
  v_total bigint;
  v_max bigint;
  v_tags text[];
  v_wanted bigint;
  v_inserted bigint;
begin
  select snapshots_total, max_urls, tags into strict v_total, v_max, v_tags from holdfast.crawl where id = p_crawl;
  with given as (
    select distinct on (u.url) u.url, u.host, u.title, u.ordinality as position
      from unnest(p_urls, p_hosts, p_titles) with ordinality u(url, host, title, ordinality)
      order by u.url, u.ordinality
  ), fresh as materialized (
    select holdfast.new_uuid() as id, g.*, row_number() over (order by g.position) as rank from given g
      where not exists (select from holdfast.snapshot s where s.crawl_id = p_crawl and s.url_hash = sha256(convert_to(g.url, 'UTF8')))
  ), room as materialized (
    select * from fresh where v_max = 0 or fresh.rank <= v_max - v_total
  ), cold as (
    insert into holdfast.snapshot (id, crawl_id, url, url_hash, host, depth, parent_id, title, tags)
      select r.id, p_crawl, r.url, sha256(convert_to(r.url, 'UTF8')), r.host, p_depth, p_parent, coalesce(r.title, ''),
             array(select t from unnest(v_tags) t union select jsonb_array_elements_text(p_tags -> (r.position - 1)::integer) order by 1)
        from room r order by r.rank
  ), hot as (
    insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, retry_at)
      select r.id, p_crawl, r.host, v_now - (select count(*) from room) * interval '1 microsecond' + r.rank * interval '1 microsecond'
        from room r order by r.rank
  )
  select (select count(*) from fresh), (select count(*) from room) into v_wanted, v_inserted;
  update holdfast.crawl set snapshots_total = snapshots_total + v_inserted, snapshots_open = snapshots_open + v_inserted,
      stop_reason = case when v_inserted < v_wanted then 'max_urls' else stop_reason end
    where id = p_crawl and (v_inserted > 0 or v_wanted > 0);
  if v_inserted > 0 then perform holdfast.crawl_wake(p_crawl, v_now); end if;
  return v_inserted;
end $$;
comment on function holdfast.snapshot_insert(uuid, uuid, integer, text[], text[], text[], jsonb) is 'Adds snapshots to a crawl whose row the caller has locked; returns how many.';

create or replace function holdfast.attempt_end(p_snapshot uuid, p_crawl uuid, p_ending text, p_reason text) returns void language sql as $$
  -- Called while the queue row still names the owner.
  insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, started_at, ending, reason)
    select q.snapshot_id, q.crawl_id, q.fence, q.owner_id, q.claimed_at, q.started_at, p_ending, p_reason
      from holdfast.snapshot_queue q where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl and q.owner_id is not null
    on conflict do nothing
$$;
comment on function holdfast.attempt_end(uuid, uuid, text, text) is 'Writes down how the current ownership of a snapshot ended.';

create or replace function holdfast.results_close(p_snapshot uuid, p_crawl uuid, p_fence bigint, p_error text) returns void language sql as $$
  update holdfast.archive_result set status = 'failed', ended_at = clock_timestamp(),
      error = coalesce(nullif(p_error, ''), 'its owner gave it up')
    where snapshot_id = p_snapshot and crawl_id = p_crawl and fence = p_fence and ended_at is null
$$;
comment on function holdfast.results_close(uuid, uuid, bigint, text) is 'Closes results that their owner will never finish.';

create or replace function holdfast.snapshot_finish(p_snapshot uuid, p_crawl uuid, p_outcome text, p_reason text, p_owner uuid,
    p_directory text, p_manifest text, p_bytes bigint, p_files bigint, p_title text, p_tags text[]) returns boolean language plpgsql as $$
-- The last step of every way to be sealed: the sealed row, the counters, and the crawl too if that was the last. The caller
-- holds the crawl's row lock. Returns whether the crawl was sealed.
begin
  insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, reason, fence, owner_id, directory, manifest_sha256, bytes,
      files, title, tags, attempts, owners_lost, started_at)
    select q.snapshot_id, q.crawl_id, p_outcome, p_reason, q.fence, p_owner, p_directory, p_manifest, p_bytes, p_files,
           coalesce(nullif(p_title, ''), s.title), array(select distinct t from unnest(s.tags || coalesce(p_tags, '{}')) t order by t),
           q.attempts, q.owners_lost, q.started_at
      from holdfast.snapshot_queue q join holdfast.snapshot s on s.id = q.snapshot_id and s.crawl_id = q.crawl_id
      where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl;
  update holdfast.crawl set snapshots_open = snapshots_open - 1, bytes = bytes + p_bytes,
      snapshots_succeeded = snapshots_succeeded + (p_outcome = 'succeeded')::integer,
      snapshots_partial = snapshots_partial + (p_outcome = 'partial')::integer,
      snapshots_failed = snapshots_failed + (p_outcome not in ('succeeded', 'partial'))::integer
    where id = p_crawl;
  return holdfast.crawl_settle(p_crawl);
end $$;
comment on function holdfast.snapshot_finish(uuid, uuid, text, text, uuid, text, text, bigint, bigint, text, text[]) is 'Seals one snapshot; the caller has checked that it may.';
