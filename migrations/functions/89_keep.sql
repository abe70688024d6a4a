-- Which captures without a change are kept: archive.keep_unchanged and archive.max_bytes, which the leading
-- runner has in its row (capabilities -> 'keep': {"after", "every", "max_bytes"}, times in seconds).
--
-- First captures and changes are never removed, nor is what they refer to: the capture before a change, whose
-- words and picture are the other side of the comparison. The latest capture of a page stays too, because the
-- next one is compared with it and may show its files again. So does one that has notes or a title of a
-- user, was put on a shelf, or is shared.

create or replace function holdfast.bytes_taken(p_bytes bigint, p_facts jsonb)
  returns bigint language sql immutable parallel safe as $$
  -- A capture that ran no hooks has links to the files of an earlier one.
  select p_bytes - case when p_facts ? 'files_from'
                     then coalesce(holdfast.fact_integer(p_facts, 'bytes_saved'), 0) else 0 end
$$;
comment on function holdfast.bytes_taken is
  'Returns the bytes that the files of a sealed page add to the archive.';

create or replace function holdfast.archive_bytes()
  returns numeric language plpgsql stable as $$
begin
  return (select coalesce(sum(s.bytes), 0) from holdfast.site s)
         + (select coalesce(sum(n.bytes), 0) from holdfast.seals_after('sites', 20000, '0') n);
end $$;
comment on function holdfast.archive_bytes is 'Returns the bytes of the files of all sealed pages.';

create or replace function holdfast.keep_rule()
  returns jsonb language sql stable as $$
  select r.capabilities -> 'keep'
    from holdfast.process r
    where r.worker_type = 'worker_runner' and r.status = 'running'
$$;
comment on function holdfast.keep_rule is 'Returns the rule of the leading runner; NULL: it has none.';

create or replace function holdfast.unchanged_spare(
    p_rule jsonb, p_from timestamptz default '-infinity', p_to timestamptz default 'infinity')
  returns table (snapshot_id uuid, crawl_id uuid, url text, sealed_at timestamptz, bytes bigint, reason text)
  language sql stable as $$
  -- The later of two captures in one period is spare. The period is that of the time when the crawl was
  -- added: an index has the captures of a URL by it.
  with rule as materialized (
    select make_interval(secs => (p_rule ->> 'after')::float8) as after, (p_rule ->> 'every')::float8 as every,
           holdfast.archive_bytes() - (p_rule ->> 'max_bytes')::numeric as excess
  ), free as materialized (
    select e.snapshot_id, e.crawl_id, s.url, s.url_hash, e.sealed_at,
           holdfast.bytes_taken(e.bytes, e.facts) as bytes, c.persona, c.created_at
      from holdfast.snapshot_sealed e
      join holdfast.snapshot s on s.id = e.snapshot_id and s.crawl_id = e.crawl_id
      join holdfast.crawl c on c.id = e.crawl_id and c.status = 'sealed'
      cross join rule r
      where e.facts ->> 'change' = 'same' and e.sealed_at > p_from and e.sealed_at <= p_to
        and (e.sealed_at < statement_timestamp() - r.after or r.excess > 0)
        and s.notes = '' and s.given_title is null
        and not exists (select
                          from holdfast.fingerprint f
                          where f.url_hash = s.url_hash
                            and (f.snapshot_id = e.snapshot_id or f.reuse ->> 'from' = e.snapshot_id::text))
        and not exists (select
                          from holdfast.snapshot_sealed n
                          where n.facts ->> 'change_from' = e.snapshot_id::text
                            and n.facts ->> 'change' not in ('first', 'same'))
        and not exists (select from holdfast.notice n where n.snapshot_id = e.snapshot_id)
        and not exists (select
                          from holdfast.shelf_page h
                          where h.crawl_id = e.crawl_id and h.snapshot_id = e.snapshot_id)
        and not exists (select
                          from holdfast.share x
                          where x.snapshot_id = e.snapshot_id and x.revoked_at is null
                            and x.expires_at > statement_timestamp())
  ), judged as (
    select f.*, coalesce(sum(f.bytes) over (order by f.sealed_at, f.snapshot_id
                                            rows between unbounded preceding and 1 preceding), 0) as before,
           f.sealed_at < statement_timestamp() - r.after
             and (r.every = 0 or exists (
               select
                 from holdfast.snapshot o
                 join holdfast.snapshot_sealed x on x.snapshot_id = o.id and x.crawl_id = o.crawl_id
                 join holdfast.crawl c on c.id = o.crawl_id
                 where o.url_hash = f.url_hash and o.crawl_id < f.crawl_id and c.persona = f.persona
                   and o.crawl_id >= holdfast.first_id(to_timestamp(
                         floor(extract(epoch from f.created_at) / r.every) * r.every))
                   and x.facts ? 'change' and x.outcome in ('succeeded', 'partial'))) as by_rule, r.excess
      from free f
      cross join rule r
  )
  select j.snapshot_id, j.crawl_id, j.url, j.sealed_at, j.bytes,
         case when j.by_rule then 'archive.keep_unchanged' else 'archive.max_bytes' end
    from judged j
    where j.by_rule or j.before < j.excess
    order by j.sealed_at, j.snapshot_id
$$;
comment on function holdfast.unchanged_spare is
  'Returns the captures without a change that a rule removes, the oldest first. p_rule: after and every in seconds, '
  'max_bytes; what is not there does not count. p_from, p_to: only those sealed between these times.';

create or replace function holdfast.maintenance_unchanged(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- Looks at some seals after those of the last run, and at the end of all begins again.
declare
  c_looks constant integer := 2000;
  c_rule constant jsonb := holdfast.keep_rule();
  v_from timestamptz;
  v_to timestamptz;
  v_page record;
  v_count bigint := 0;
begin
  if c_rule is null then
    update holdfast.counted c set full_since = null where c.what = 'unchanged' and c.full_since is not null;
    return 0;
  end if;
  select c.upto into v_from from holdfast.counted c where c.what = 'unchanged' for update;
  select max(n.sealed_at) into v_to
    from (select e.sealed_at
            from holdfast.snapshot_sealed e
            where e.facts ->> 'change' = 'same' and e.sealed_at > v_from
            order by e.sealed_at limit c_looks) n;
  for v_page in
    select * from holdfast.unchanged_spare(c_rule, v_from, coalesce(v_to, 'infinity')) limit p_task.batch
  loop
    perform holdfast.snapshot_remove(v_page.snapshot_id, v_page.reason);
    v_count := v_count + 1;
  end loop;
  update holdfast.counted c
    set upto = case when v_count = p_task.batch then v_page.sealed_at when v_to is null then '-infinity' else v_to end,
        -- Infinite until a look at all captures has ended, from the first to the last, that removed none.
        full_since = case when x.fits or v_count > 0 then null
                          when v_from <> '-infinity' and c.full_since is null then null
                          when v_to is null then least(c.full_since, clock_timestamp())
                          else coalesce(c.full_since, 'infinity') end
    from (select coalesce(holdfast.archive_bytes() <= (c_rule ->> 'max_bytes')::numeric, true) as fits) x
    where c.what = 'unchanged';
  return v_count;
end $$;

create or replace function holdfast.archive_full()
  returns table (since timestamptz, reason text) language sql stable as $$
  select c.full_since,
         format('It takes %s, more than archive.max_bytes (%s), and no capture is left that found no change and that '
                'no other needs. Raise archive.max_bytes, or remove crawls: holdfast remove.',
                pg_size_pretty(holdfast.archive_bytes()), pg_size_pretty((r.rule ->> 'max_bytes')::numeric))
    from holdfast.counted c
    cross join (select holdfast.keep_rule() as rule) r
    where c.what = 'unchanged' and c.full_since < 'infinity' and r.rule ? 'max_bytes'
$$;
comment on function holdfast.archive_full is
  'Returns since when the archive exceeds archive.max_bytes although nothing is left to remove; no row: it does not.';
