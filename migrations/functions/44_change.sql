-- Changes of pages. The worker compares a page with the fingerprint of its predecessor; the seal checks
-- that this still is the predecessor, and stores the fingerprint of the page.

create or replace function holdfast.fingerprint_get(p_url text, p_persona text, p_kind text, p_snapshot uuid)
  returns table (snapshot_id uuid, kind text, body text, reuse jsonb, age_ms bigint)
  language sql stable as $$
  -- Returns the fingerprint with which a capture of the URL is compared, of the kind or, without one,
  -- the latest. age_ms: time between the claims of both captures; negative: the other one began later.
  select f.snapshot_id, f.kind, encode(f.body, 'base64'), f.reuse,
         (extract(epoch from coalesce((select q.claimed_at
                                         from holdfast.snapshot_queue q
                                         where q.snapshot_id = p_snapshot
                                         limit 1), statement_timestamp()) - f.at) * 1000)::bigint
    from holdfast.fingerprint f
    where f.url_hash = sha256(convert_to(p_url, 'UTF8'))
      and f.persona = p_persona
      and f.kind = coalesce(p_kind, f.kind)
      and f.snapshot_id <> p_snapshot
    order by f.at desc
    limit 1
$$;
comment on function holdfast.fingerprint_get is
  'Returns the fingerprint with which a capture of a URL is compared.';

create or replace function holdfast.recapture_get(p_url text, p_persona text, p_snapshot uuid)
  returns table (snapshot_id uuid, kind text, body text, reuse jsonb, directory text)
  language sql stable as $$
  -- No row: no files are there that could be shown again, or a capture that began later was sealed.
  select f.snapshot_id, f.kind, f.body, f.reuse, e.directory
    from holdfast.fingerprint_get(p_url, p_persona, null, p_snapshot) f
    cross join lateral (select o.directory
                          from holdfast.snapshot_sealed o
                          where o.snapshot_id = (f.reuse ->> 'from')::uuid
                            and o.crawl_id = (f.reuse ->> 'crawl')::uuid
                            and o.outcome = 'succeeded'
                          limit 1) e
    where f.age_ms >= 0 and f.reuse ->> 'from' <> ''
$$;
comment on function holdfast.recapture_get is
  'Returns the last capture of a URL, and the directory of the one that hooks made, whose files it shows.';

create or replace function holdfast.noise_of(p_url text)
  returns table (fingerprint text, directory text) language sql stable as $$
  -- Returns the fingerprints of a URL that have learnt, with the files of the capture that each is of.
  select encode(f.body, 'base64'), e.directory
    from holdfast.fingerprint f
    join holdfast.snapshot_sealed e on e.snapshot_id = f.snapshot_id and e.crawl_id = f.crawl_id
    where f.url_hash = sha256(convert_to(p_url, 'UTF8')) and e.directory is not null
    order by f.at desc
$$;
comment on function holdfast.noise_of is 'Returns the fingerprints of a URL, which have the mask of noise.';

create or replace function holdfast.changes_settle(p_pages holdfast.finished_page[])
  returns holdfast.finished_page[] language plpgsql as $$
-- Called by finish before the pages are sealed. Stores their fingerprints, in the order of their keys,
-- and returns the pages with the facts that hold now. If another capture of the URL was sealed since the
-- page was compared, the page is the same as that one, or its change stands; a page that was claimed
-- before the one in the table has no change, because its successor is sealed already.
declare
  v_page record;
  v_old record;
begin
  for v_page in
    select p.n, p.snapshot, p.crawl, s.url_hash, q.claimed_at, p.fingerprint ->> 'persona' as persona,
           p.fingerprint ->> 'kind' as kind, (p.fingerprint ->> 'previous')::uuid as previous,
           decode(p.fingerprint ->> 'digest', 'hex') as digest,
           decode(p.fingerprint ->> 'body', 'base64') as body, p.fingerprint -> 'reuse' as reuse,
           p.facts ? 'files_from' as without_hooks
      from unnest(p_pages) with ordinality p(
        snapshot, crawl, fence, ending, outcome, reason, delay_ms, spend, directory, manifest, bytes, files,
        title, tags, links, results, captures, originals, facts, fingerprint, n)
      cross join lateral (select o.url_hash
                            from holdfast.snapshot o
                            where o.id = p.snapshot and o.crawl_id = p.crawl
                            limit 1) s
      cross join lateral (select o.claimed_at
                            from holdfast.snapshot_queue o
                            where o.snapshot_id = p.snapshot and o.crawl_id = p.crawl
                            limit 1) q
      where p.fingerprint is not null and p.outcome in ('succeeded', 'partial', 'failed')
      order by s.url_hash, p.fingerprint ->> 'persona', p.fingerprint ->> 'kind', q.claimed_at
  loop
    insert into holdfast.fingerprint as f
        (url_hash, persona, kind, snapshot_id, crawl_id, at, digest, body, reuse)
      values (v_page.url_hash, v_page.persona, v_page.kind, v_page.snapshot, v_page.crawl, v_page.claimed_at,
              v_page.digest, v_page.body, v_page.reuse)
      on conflict (url_hash, persona, kind) do update
        set snapshot_id = excluded.snapshot_id, crawl_id = excluded.crawl_id, at = excluded.at,
            digest = excluded.digest, body = excluded.body, reuse = excluded.reuse
        where f.at < excluded.at and f.snapshot_id = v_page.previous;
    if found then continue; end if;
    select f.snapshot_id, f.at, f.digest into strict v_old
      from holdfast.fingerprint f
      where f.url_hash = v_page.url_hash and f.persona = v_page.persona and f.kind = v_page.kind
      for update;
    if v_page.without_hooks and v_old.digest <> v_page.digest then
      raise exception 'the page has changed since the capture whose files it was to show' using errcode = 'HF004';
    end if;
    if v_old.digest = v_page.digest then
      p_pages[v_page.n].facts := p_pages[v_page.n].facts - holdfast.change_facts()
        || jsonb_build_object('change', 'same', 'change_from', v_old.snapshot_id);
    elsif v_old.at >= v_page.claimed_at then
      p_pages[v_page.n].facts := p_pages[v_page.n].facts - holdfast.change_facts();
    end if;
    if v_old.at < v_page.claimed_at then
      update holdfast.fingerprint f
        set snapshot_id = v_page.snapshot, crawl_id = v_page.crawl, at = v_page.claimed_at,
            digest = v_page.digest, body = v_page.body, reuse = v_page.reuse
        where f.url_hash = v_page.url_hash and f.persona = v_page.persona and f.kind = v_page.kind;
    end if;
  end loop;
  return p_pages;
end $$;

create or replace function holdfast.change_facts()
  returns text[] language sql immutable parallel safe as $$
  select '{change,change_share,change_from,words_added,words_removed,words_moved,links_added,links_removed,
           look_share,change_learnt}'::text[]
$$;
comment on function holdfast.change_facts is 'Returns the names of the facts of a change.';

create or replace function holdfast.share_of(p_share text)
  returns numeric language plpgsql immutable as $$
begin
  if p_share !~ '^\d+(\.\d+)?%?$' then
    raise exception 'invalid share: "%"', p_share using errcode = 'HF004', hint = 'For example 5% or 0.05.';
  end if;
  return rtrim(p_share, '%')::numeric / case when p_share like '%\%' then 100 else 1 end;
end $$;
comment on function holdfast.share_of is 'Returns a share between 0 and 1 from 5% or 0.05.';
