-- Scope of a crawl: patterns of URLs, and their change while the crawl runs.

create or replace function holdfast.url_matches(p_pattern text, p_url text, p_host text)
  returns boolean language sql immutable parallel safe as $$
  -- A domain (and its subdomains), *.domain (only subdomains), or a regular expression that matches somewhere
  -- in the URL.
  select case
           when p_pattern ~ '^[a-z0-9-]+([.][a-z0-9-]+)+$'
             then p_host = p_pattern or right(p_host, length(p_pattern) + 1) = '.' || p_pattern
           when p_pattern ~ '^[*][.][a-z0-9-]+([.][a-z0-9-]+)*$'
             then right(p_host, length(p_pattern) - 1) = substr(p_pattern, 2)
           else p_url ~* p_pattern
         end
$$;
comment on function holdfast.url_matches is
  'Returns true if a URL matches a pattern: a domain, *.domain, or a regular expression.';

create or replace function holdfast.scope_refusal(p_scope jsonb, p_url text, p_host text)
  returns text language plpgsql immutable parallel safe as $$
-- Why a URL does not belong to a crawl; NULL: it does. Keys of p_scope, all optional:
--   schemes  the schemes that are allowed
--   deny     patterns; a URL that fits one is excluded
--   allow    patterns; if there are any, a URL must fit one
--   hosts, domains, prefixes
--            if there are any, a URL must fit one: the exact host, the domain or below it, the start of
--            the URL
begin
  if p_scope = '{}' then return null; end if;
  if p_scope ? 'schemes' and not p_scope -> 'schemes' ? split_part(p_url, ':', 1) then
    return 'its scheme is not allowed';
  end if;
  if p_scope ? 'deny'
     and exists (select from jsonb_array_elements_text(p_scope -> 'deny') d
                   where holdfast.url_matches(d, p_url, p_host)) then
    return 'excluded: ' || (select d
                              from jsonb_array_elements_text(p_scope -> 'deny') d
                              where holdfast.url_matches(d, p_url, p_host)
                              limit 1);
  end if;
  if jsonb_array_length(coalesce(p_scope -> 'allow', '[]')) > 0
     and not exists (select from jsonb_array_elements_text(p_scope -> 'allow') a
                       where holdfast.url_matches(a, p_url, p_host)) then
    return 'not among what is allowed';
  end if;
  if (p_scope ? 'hosts' or p_scope ? 'domains' or p_scope ? 'prefixes')
     and not coalesce(p_scope -> 'hosts' ? p_host, false)
     and not exists (select from jsonb_array_elements_text(p_scope -> 'domains') d
                       where p_host = d or right(p_host, length(d) + 1) = '.' || d)
     and not exists (select from jsonb_array_elements_text(p_scope -> 'prefixes') x
                       where starts_with(p_url, x)) then
    return 'outside the sites it may visit';
  end if;
  return null;
end $$;
comment on function holdfast.scope_refusal is 'Returns why a URL is outside a crawl''s scope, or NULL.';

create or replace function holdfast.scope_check(p_scope jsonb)
  returns void language plpgsql immutable as $$
-- Fails if p_scope is not a scope, or if one of its patterns is not valid.
declare
  v_key text;
  v_pattern text;
begin
  for v_key in select jsonb_object_keys(p_scope)
  loop
    if v_key not in ('schemes', 'deny', 'allow', 'hosts', 'domains', 'prefixes')
       or jsonb_typeof(p_scope -> v_key) <> 'array' then
      raise exception 'scope: "%" is not a list of a scope', v_key
        using errcode = 'HF004', hint = 'A scope has schemes, deny, allow, hosts, domains and prefixes.';
    end if;
  end loop;
  for v_pattern in
    select jsonb_array_elements_text(p_scope -> k)
      from unnest(array['deny', 'allow']) k
  loop
    begin
      perform holdfast.url_matches(v_pattern, 'https://example.com/', 'example.com');
    exception when invalid_regular_expression then
      raise exception 'scope: "%" is not a pattern: %', v_pattern, sqlerrm
        using errcode = 'HF004',
          hint = 'A pattern is a domain (example.com), *.example.com, or a regular expression.';
    end;
  end loop;
end $$;

create or replace function holdfast.archived_plugins(p_url_hash bytea, p_but_crawl uuid, p_age interval)
  returns text[] language sql stable as $$
  -- The plugins of which other crawls have results for a URL, in pages that were archived at least in part. A
  -- plugin that was skipped counts only if nothing failed: otherwise its input may have been missing. A
  -- success with an error (another hook spoiled it) does not count.
  select coalesce(array_agg(distinct d.plugin), '{}')
    from (select r.plugin
            from holdfast.snapshot s
            join holdfast.snapshot_sealed e
              on e.snapshot_id = s.id and e.crawl_id = s.crawl_id and e.outcome in ('succeeded', 'partial')
            join holdfast.archive_result r
              on r.snapshot_id = s.id and r.crawl_id = s.crawl_id and r.fence = e.fence
            where s.url_hash = p_url_hash
              and s.crawl_id <> p_but_crawl
              and (p_age is null or e.sealed_at > clock_timestamp() - p_age)
            group by s.id, s.crawl_id, r.plugin
            having bool_and((r.status in ('succeeded', 'noresults') and r.error = '')
                            or (e.outcome = 'succeeded' and r.status = 'skipped'))) d
$$;

create or replace function holdfast.crawl_scope(p_crawl uuid, p_add jsonb, p_remove jsonb, p_by text)
  returns bigint language plpgsql as $$
-- Adds to and removes from the lists of a crawl's scope, e.g. {"deny": ["ads.example.com"]}. The crawl leaves
-- crawl_queue until the new scope is applied to all of its open snapshots. So no claim takes a snapshot that
-- only the old scope allowed.
declare
  v_crawl holdfast.crawl;
  v_scope jsonb;
  v_key text;
  v_list jsonb;
begin
  v_crawl := holdfast.crawl_lock(p_crawl);
  if v_crawl.status = 'sealed' or v_crawl.stopping_at is not null then
    raise exception 'crawl % has ended', p_crawl
      using errcode = 'HF004', hint = 'The scope of a crawl can be changed while it is open.';
  end if;
  v_scope := v_crawl.scope;
  for v_key in select jsonb_object_keys(p_add) union select jsonb_object_keys(p_remove)
  loop
    select jsonb_agg(distinct e)
      into v_list
      from jsonb_array_elements(coalesce(v_scope -> v_key, '[]') || coalesce(p_add -> v_key, '[]')) e
      where not coalesce(p_remove -> v_key, '[]') @> e;
    v_scope := case
                 when v_list is null then v_scope - v_key
                 else v_scope || jsonb_build_object(v_key, v_list)
               end;
  end loop;
  perform holdfast.scope_check(v_scope);
  if v_scope = v_crawl.scope then return 0; end if;
  update holdfast.crawl
    set scope = v_scope, judged_to = '00000000-0000-0000-0000-000000000000',
        changed_by = holdfast.who(p_by), owner_id = null,
        retry_at = case status when 'paused' then retry_at else clock_timestamp() end
    where id = p_crawl;
  perform holdfast.control_done('scope', 'crawl', p_crawl::text, p_crawl, holdfast.who(p_by),
    'now ' || v_scope::text, 0);
  perform holdfast.notify_workers();
  return 1;
end $$;
comment on function holdfast.crawl_scope is 'Changes the scope of a running crawl. Returns 0 if that changes nothing.';

create or replace function holdfast.crawl_judge_step(p_crawl uuid, p_batch integer)
  returns boolean language plpgsql as $$
-- Applies a changed scope to the next p_batch snapshots: those outside are parked, even if a worker owns
-- them; those inside again are queued. Returns true if none is left; then the crawl can be claimed from
-- again.
declare
  v_crawl holdfast.crawl;
  v_step record;
begin
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  if not found or v_crawl.judged_to is null then return true; end if;
  perform holdfast.lock_for(array[p_crawl], holdfast.crawl_held(p_crawl));
  with next as materialized (
    select s.id, s.url, s.host
      from holdfast.snapshot s
      where s.crawl_id = p_crawl and s.id > v_crawl.judged_to
      order by s.id
      limit p_batch
  ), open as (
    select q.snapshot_id, q.crawl_id, q.fence, q.excluded, q.status,
           holdfast.scope_refusal(v_crawl.scope, n.url, n.host) as refusal
      from next n
      join holdfast.snapshot_queue q on q.snapshot_id = n.id and q.crawl_id = p_crawl
      for update of q
  ), page as ( -- those that change sides
    select o.refusal is null as inside,
           jsonb_populate_record(null::holdfast.finished_page, jsonb_build_object(
             'snapshot', o.snapshot_id, 'crawl', o.crawl_id, 'fence', o.fence, 'ending', 'interrupted',
             'reason', o.refusal || coalesce(' (by ' || nullif(v_crawl.changed_by, '') || ')', ''))) as page
      from open o
      where case when o.refusal is null then o.excluded else o.status <> 'paused' end
  )
  select (select count(*) from next) as count,
         (select max(n.id::text)::uuid from next n) as last,
         array(select p.page from page p where not p.inside) as outside,
         array(select p.page from page p where p.inside) as inside
    into v_step;
  perform holdfast.release_pages(v_step.outside, 'excluded');
  perform holdfast.release_pages(v_step.inside, 'queued');
  perform pg_notify('holdfast', 'control');
  update holdfast.crawl
    set judged_to = case when v_step.count = p_batch then v_step.last end
    where id = p_crawl;
  if v_step.count = p_batch then return false; end if;
  perform holdfast.crawl_settle(p_crawl);
  return true;
end $$;
comment on function holdfast.crawl_judge_step is
  'Applies the changed scope of a crawl to the next batch; returns true if it was the last batch.';
