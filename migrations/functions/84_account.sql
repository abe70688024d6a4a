-- Accounts with passwords (lib/store/account.cpp), and the tokens that a user makes for oneself.

create or replace function holdfast.account_out(p_name text, p_by text)
  returns void language sql as $$
  update holdfast.api_token
    set revoked_at = clock_timestamp(), revoked_by = holdfast.who(p_by)
    where account = p_name and name like 'login-%' and revoked_at is null
$$;
comment on function holdfast.account_out is 'Ends the sessions of an account.';

create or replace function holdfast.account_set(p_name text, p_role text, p_hash text, p_by text)
  returns boolean language plpgsql as $$
-- Returns false if there was such an account. Its sessions end then, because the password is another one.
declare
  v_new boolean;
begin
  insert into holdfast.account (name, role, hash, created_by)
    values (p_name, p_role, p_hash, holdfast.who(p_by))
    on conflict (name) do update set role = p_role, hash = p_hash, changed_at = clock_timestamp()
    returning xmax = 0 into v_new;
  perform holdfast.account_out(p_name, p_by);
  return v_new;
exception when check_violation then
  raise exception 'an account cannot have the name "%" and the role "%"', p_name, p_role
    using errcode = 'HF004',
          hint = 'A name has lower case letters, digits and ._@-; a role is reader or operator.';
end $$;
comment on function holdfast.account_set is
  'Adds an account, or gives one a new password. holdfast account add.';

create or replace function holdfast.account_change(p_name text, p_hash text, p_new_hash text, p_by text)
  returns boolean language plpgsql as $$
-- Returns false if the account has another password than p_hash now.
begin
  update holdfast.account set hash = p_new_hash, changed_at = clock_timestamp()
    where name = p_name and hash = p_hash;
  if not found then return false; end if;
  perform holdfast.account_out(p_name, p_by);
  return true;
end $$;
comment on function holdfast.account_change is
  'Gives an account the new password that its user has chosen on the page, and ends its sessions.';

create or replace function holdfast.account_remove(p_name text, p_by text)
  returns boolean language sql as $$
  with gone as (delete from holdfast.account where name = p_name returning 1)
  select exists (select from gone)
$$;
comment on function holdfast.account_remove is
  'Removes an account with its sessions and tokens. Returns false if there is none.';

create or replace function holdfast.account_ask(p_name text, p_peer text)
  returns table (hash text, wait integer) language plpgsql as $$
-- Counts an attempt before its password is checked, so that attempts at the same time count too. One row: the
-- hash of the account (NULL: there is none), or the seconds that the client must wait.
declare
  c_window constant interval := '15 minutes';
begin
  perform pg_advisory_xact_lock(hashtextextended('holdfast account ' || p_peer, 0));
  delete from holdfast.account_attempt a where a.at < clock_timestamp() - c_window;
  select ceil(extract(epoch from max(t.at) + c_window - clock_timestamp())) into wait
    from (-- The attempt whose end makes room for another one.
      (select a.at from holdfast.account_attempt a where a.peer = p_peer and a.name = p_name
         order by a.at desc offset 4 limit 1)
      union all
      (select a.at from holdfast.account_attempt a where a.peer = p_peer
         order by a.at desc offset 29 limit 1)
      union all
      (select a.at from holdfast.account_attempt a where a.name = p_name
         order by a.at desc offset 99 limit 1)) t;
  if wait is null then
    insert into holdfast.account_attempt (peer, name) values (p_peer, left(p_name, 100));
    hash := (select a.hash from holdfast.account a where a.name = p_name);
  end if;
  return next;
end $$;
comment on function holdfast.account_ask is
  'Begins to sign an account in: its hash, or how long the client must wait after wrong passwords.';

create or replace function holdfast.account_enter(p_name text, p_peer text, p_hash text, p_token text,
    p_token_hash text, p_keep interval, p_by text)
  returns boolean language plpgsql as $$
-- Makes the token of a session, after the password was right. Returns false if the account has another one
-- now.
declare
  v_role text;
begin
  select a.role into v_role from holdfast.account a where a.name = p_name and a.hash = p_hash for share;
  if not found then return false; end if;
  delete from holdfast.account_attempt a where a.peer = p_peer and a.name = p_name;
  perform holdfast.token_add(p_token, v_role, p_token_hash, p_keep, p_by);
  update holdfast.api_token set account = p_name where name = p_token;
  return true;
end $$;
comment on function holdfast.account_enter is 'Signs an account in: adds the token of its session.';

create or replace function holdfast.accounts_exist()
  returns boolean language sql stable as $$
  select exists (select from holdfast.account)
$$;
comment on function holdfast.accounts_exist is 'Returns true if the page asks for names and passwords.';

create or replace function holdfast.token_maker(p_said text)
  returns text language sql stable as $$
  -- Sessions of sign-in links are those of one user: the link's.
  select coalesce((select t.created_by from holdfast.api_token t
                     where w.who = 'token ' || t.name and t.name like 'link-%'), w.who)
    from holdfast.who(p_said) w(who)
$$;
comment on function holdfast.token_maker is 'Returns the name of the user whose own tokens a caller sees.';

create or replace function holdfast.own_tokens(p_said text)
  returns setof holdfast.v_token language sql stable as $$
  select * from holdfast.v_token v
    where v.created_by = holdfast.token_maker(p_said)
    order by v.state <> 'valid', v.created_at desc limit 200
$$;
comment on function holdfast.own_tokens is 'Tokens and sessions of a user, valid ones first.';

create or replace function holdfast.own_token_add(
    p_name text, p_role text, p_hash text, p_keep interval, p_by text)
  returns void language plpgsql as $$
begin
  if p_name ~ '^(link|login)-' then
    raise exception 'a token cannot have the name "%": sessions have such names', p_name
      using errcode = 'HF004';
  end if;
  perform holdfast.token_add(p_name, p_role, p_hash, p_keep, p_by);
  update holdfast.api_token t
    set created_by = holdfast.token_maker(p_by),
        account = (select a.name from holdfast.account a where 'account ' || a.name = holdfast.who(p_by))
    where t.name = p_name;
end $$;
comment on function holdfast.own_token_add is 'Adds a token of the user that asks for it.';

create or replace function holdfast.own_token_revoke(p_name text, p_by text)
  returns bigint language plpgsql as $$
begin
  if not exists (select from holdfast.own_tokens(p_by) t where t.name = p_name) then
    raise exception 'you have no token "%"', p_name using errcode = 'HF004';
  end if;
  return holdfast.token_revoke(p_name, p_by);
end $$;
comment on function holdfast.own_token_revoke is 'Makes a token invalid that its user made.';

create or replace view holdfast.v_account as
  select a.name, a.role, a.created_at, a.created_by, a.changed_at,
         (select count(*)
            from holdfast.api_token t
            where t.account = a.name and t.name like 'login-%' and t.revoked_at is null
              and t.expires_at > clock_timestamp()) as sessions
    from holdfast.account a
    order by a.name;
comment on view holdfast.v_account is 'Names that sign in on the page with a password.';
comment on column holdfast.v_account.name is
  'Name of the account. Commands given with it are recorded under this name.';
comment on column holdfast.v_account.sessions is 'Browsers that are signed in.';
