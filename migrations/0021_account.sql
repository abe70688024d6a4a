-- Accounts: names with passwords, for users whom no proxy signs in.

create table holdfast.account (
  name text primary key,
  role text not null,
  hash text not null,
  created_at timestamptz not null default clock_timestamp(), created_by text not null,
  changed_at timestamptz not null default clock_timestamp(),
  constraint account_name check (name ~ '^[a-z0-9][a-z0-9._@-]{0,62}$'),
  constraint account_role check (role in ('reader', 'operator')),
  constraint account_hash check (hash ~ '^\$y\$[0-9A-Za-z./$]{20,255}$')
);
comment on table holdfast.account is
  'Names that sign in on the page with a password. The password itself is not stored.';
comment on column holdfast.account.name is 'Name of the account. Commands given with it are recorded under this name.';
comment on column holdfast.account.role is 'Permissions: reader or operator.';
comment on column holdfast.account.hash is 'The password, hashed by yescrypt of crypt(3).';
comment on column holdfast.account.created_at is 'Time at which the account was added.';
comment on column holdfast.account.created_by is 'User who added the account.';
comment on column holdfast.account.changed_at is 'Time at which its password was set.';

alter table holdfast.api_token add column account text references holdfast.account on delete cascade;
comment on column holdfast.api_token.account is
  'Account that the token acts for: a session of it, or a token that it made. NULL: none. It ends with its account.';
create index api_token_by_account on holdfast.api_token (account) where account is not null;
comment on index holdfast.api_token_by_account is 'Tokens of an account that is removed or gets a new password.';

create table holdfast.account_attempt (
  peer text not null,
  name text not null,
  at timestamptz not null default clock_timestamp()
);
comment on table holdfast.account_attempt is
  'Attempts to sign in with a password that have not succeeded, for fifteen minutes.';
comment on column holdfast.account_attempt.peer is 'Address of the client.';
comment on column holdfast.account_attempt.name is 'Name that was given. There may be no such account.';
comment on column holdfast.account_attempt.at is 'Time of the attempt.';
create index account_attempt_by_peer on holdfast.account_attempt (peer, at);
comment on index holdfast.account_attempt_by_peer is 'Attempts of a client.';
create index account_attempt_by_name on holdfast.account_attempt (name, at);
comment on index holdfast.account_attempt_by_name is 'Attempts with a name.';
create index account_attempt_by_time on holdfast.account_attempt (at);
comment on index holdfast.account_attempt_by_time is 'Attempts that are over.';

-- Gets another column. Programs read its columns by name.
drop function if exists holdfast.token_check(text);
