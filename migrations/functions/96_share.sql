-- Links that share a snapshot, the captures of a URL, or a shelf. A link lets its holder read exactly
-- that, until it expires or is revoked. Each request calls these functions.

create or replace function holdfast.share_add(
    p_id text, p_hash text, p_snapshot uuid, p_url text, p_shelf text, p_keep interval, p_by text)
  returns boolean language plpgsql as $$
-- p_hash: SHA-256 of the secret, as hexadecimal digits. One of p_snapshot, p_url and p_shelf (name or
-- id) is given. Returns false if there is a link with this id.
declare
  c_found constant boolean := case
    when p_snapshot is not null then exists (
      select from holdfast.snapshot_sealed e where e.snapshot_id = p_snapshot and e.directory is not null)
    when p_url is not null then exists (
      select from holdfast.snapshot s
        join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
        where s.url_hash = sha256(convert_to(p_url, 'UTF8')) and e.directory is not null)
    else true end;
begin
  if num_nonnulls(p_snapshot, p_url, p_shelf) <> 1 then
    raise exception 'a link shares one thing' using errcode = 'HF004', hint = 'Name a snapshot, a URL or a shelf.';
  elsif not c_found then
    raise exception 'nothing is archived of %', coalesce(left(p_url, 200), p_snapshot::text)
      using errcode = 'HF004', hint = 'Share it when its capture has ended.';
  end if;
  insert into holdfast.share (id, hash, snapshot_id, url, shelf_id, created_by, expires_at)
    values (p_id, decode(p_hash, 'hex'), p_snapshot, p_url,
            case when p_shelf is not null then holdfast.shelf_find(p_shelf) end, holdfast.who(p_by),
            clock_timestamp() + p_keep)
    on conflict (id) do nothing;
  return found;
exception when check_violation then
  raise exception 'a link cannot expire after %', p_keep using errcode = 'HF004', hint = 'At most 5 years: 30d.';
end $$;
comment on function holdfast.share_add is 'Makes a link by the SHA-256 of its secret. holdfast share add makes one.';

create or replace function holdfast.share_revoke(p_id text, p_by text)
  returns bigint language plpgsql as $$
begin
  if not exists (select from holdfast.share where id = p_id) then
    raise exception 'there is no link "%"', left(p_id, 100) using errcode = 'HF004', hint = 'holdfast share list';
  end if;
  update holdfast.share
    set revoked_at = clock_timestamp(), revoked_by = holdfast.who(p_by)
    where id = p_id and revoked_at is null;
  return found::integer;
end $$;
comment on function holdfast.share_revoke is 'Makes a link invalid. Returns 0 if it was revoked before.';

create or replace function holdfast.share_open(p_hash text)
  returns table (snapshot_id uuid, url text, shelf_id uuid, name text, description text,
                 expires_at timestamptz)
  language sql stable as $$
  select x.snapshot_id, x.url, x.shelf_id, s.name, s.description, x.expires_at
    from holdfast.share x
    left join holdfast.shelf s on s.id = x.shelf_id
    where x.hash = decode(p_hash, 'hex') and x.revoked_at is null and x.expires_at > clock_timestamp()
$$;
comment on function holdfast.share_open is
  'Returns what the valid link with this SHA-256 shares. No row: there is none.';

create or replace function holdfast.share_directory(p_hash text, p_snapshot uuid)
  returns text language sql stable as $$
  select e.directory
    from holdfast.share_open(p_hash) x
    join holdfast.snapshot s on s.id = p_snapshot
    join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where case when x.snapshot_id is not null then x.snapshot_id = s.id
               when x.url is not null
                 then s.url_hash = sha256(convert_to(x.url, 'UTF8')) and e.outcome <> 'cancelled'
               else holdfast.shelf_has(x.shelf_id, s.id) end
$$;
comment on function holdfast.share_directory is
  'Returns the directory of a snapshot, if the valid link with this SHA-256 shares it; else no row, or NULL.';

create or replace view holdfast.v_share as
  select x.id,
         case when x.shelf_id is not null then 'shelf' when x.url is not null then 'url' else 'snapshot' end as kind,
         coalesce(s.name, x.url, n.url) as target, x.shelf_id, x.snapshot_id,
         case when x.revoked_at is not null then 'revoked'
              when x.expires_at <= clock_timestamp() then 'expired' else 'valid' end as state,
         x.created_at, x.created_by, x.expires_at, x.revoked_at, x.revoked_by
    from holdfast.share x
    left join holdfast.shelf s on s.id = x.shelf_id
    left join holdfast.snapshot n on n.id = x.snapshot_id;
comment on view holdfast.v_share is 'Links that share pages and shelves. The links themselves are not stored.';
comment on column holdfast.v_share.id is 'Id of the share.';
comment on column holdfast.v_share.kind is 'snapshot, url (all captures of one) or shelf.';
comment on column holdfast.v_share.target is 'Name of the shelf, or URL of the page.';
comment on column holdfast.v_share.state is 'valid, expired or revoked.';
