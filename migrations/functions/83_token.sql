-- Tokens for the page and the HTTP API (services/serve/access.cpp).

create or replace function holdfast.token_add(
    p_name text, p_role text, p_hash text, p_keep interval, p_by text)
  returns void language plpgsql as $$
-- p_hash: SHA-256 of the token, as hexadecimal digits. p_keep: how long it is valid; NULL: for ever.
begin
  insert into holdfast.api_token (name, role, hash, created_by, expires_at)
    values (p_name, p_role, decode(p_hash, 'hex'), holdfast.who(p_by), clock_timestamp() + p_keep);
exception
  when unique_violation then
    raise exception 'there is already a token "%"', p_name
      using errcode = 'HF004', hint = 'Choose another name. A revoked token keeps its name.';
  when check_violation then
    raise exception 'a token cannot have the name "%" and the role "%"', p_name, p_role
      using errcode = 'HF004',
            hint = 'A name has lower case letters, digits and ._-; a role is reader or operator.';
end $$;
comment on function holdfast.token_add is 'Adds a token by its SHA-256. holdfast token add makes one.';

create or replace function holdfast.token_revoke(p_name text, p_by text)
  returns bigint language plpgsql as $$
begin
  if not exists (select from holdfast.api_token where name = p_name) then
    raise exception 'there is no token "%"', p_name using errcode = 'HF004', hint = 'holdfast token list';
  end if;
  with recursive made(name) as (
    select p_name
    union
    select t.name from made m join holdfast.api_token t on t.created_by = 'token ' || m.name
  )
  update holdfast.api_token
    set revoked_at = clock_timestamp(), revoked_by = holdfast.who(p_by)
    where name in (select m.name from made m) and revoked_at is null;
  return found::integer;
end $$;
comment on function holdfast.token_revoke is
  'Makes a token invalid, with all that were made with it. Returns 0 if it was revoked before.';

create or replace function holdfast.token_check(p_hash text)
  returns table (name text, role text, files_key text, account text) language sql stable as $$
  select t.name, case when a.role = 'reader' then a.role else t.role end, t.files_key, t.account
    from holdfast.api_token t
    left join holdfast.account a on a.name = t.account
    where t.hash = decode(p_hash, 'hex') and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > clock_timestamp())
$$;
comment on function holdfast.token_check is
  'Returns the valid token with this SHA-256, its role, the key of its addresses, and the account that it acts for. '
  'No row: there is none.';

create or replace function holdfast.tokens_valid(p_names text[])
  returns table (name text) language sql stable as $$
  select t.name
    from holdfast.api_token t
    where t.name = any (p_names) and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > clock_timestamp())
$$;
comment on function holdfast.tokens_valid is 'Returns those of these tokens that are valid now.';

create or replace function holdfast.files_key_valid(p_key text)
  returns boolean language sql stable as $$
  select exists (select
                   from holdfast.api_token t
                   where t.files_key = p_key and t.revoked_at is null
                     and (t.expires_at is null or t.expires_at > clock_timestamp()))
$$;
comment on function holdfast.files_key_valid is
  'Returns true if addresses of files with this key are those of a valid token.';

create or replace function holdfast.api_request_once(
    p_caller text, p_key text, p_body_hash text, p_crawl uuid)
  returns uuid language plpgsql as $$
-- The crawl that the first request with this key adds: p_crawl, if this is the first.
declare
  v_row holdfast.api_request;
begin
  delete from holdfast.api_request where at < clock_timestamp() - interval '1 day';
  insert into holdfast.api_request (caller, key, body_hash, crawl_id)
    values (holdfast.who(p_caller), p_key, decode(p_body_hash, 'hex'), p_crawl)
    on conflict do nothing;
  select * into strict v_row from holdfast.api_request where caller = holdfast.who(p_caller) and key = p_key;
  if v_row.body_hash <> decode(p_body_hash, 'hex') then
    raise exception 'Idempotency-Key "%" was used for another request', p_key
      using errcode = 'HF004', hint = 'Use a new key for each request.';
  end if;
  return v_row.crawl_id;
end $$;
comment on function holdfast.api_request_once is
  'The crawl of an Idempotency-Key: p_crawl if the key is new. Refuses a key that came with another body.';

create or replace view holdfast.v_token as
  select t.name, t.role,
         case
           when t.revoked_at is not null then 'revoked'
           when t.expires_at <= clock_timestamp() then 'expired'
           else 'valid'
         end as state,
         t.created_at, t.created_by, t.expires_at, t.revoked_at, t.revoked_by, t.account
    from holdfast.api_token t
    order by t.created_at;
comment on view holdfast.v_token is
  'Tokens for the page and the HTTP API. Who made them, and whether they are valid.';
comment on column holdfast.v_token.state is 'valid, expired or revoked.';
comment on column holdfast.v_token.account is 'Account that it acts for; NULL: none.';
