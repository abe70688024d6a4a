-- Tokens for the page and the HTTP API, and the keys that make requests repeatable.

create table holdfast.api_token (
  name text primary key,
  role text not null,
  hash bytea not null unique,
  created_at timestamptz not null default clock_timestamp(), created_by text not null,
  expires_at timestamptz, revoked_at timestamptz, revoked_by text,
  files_key text not null unique default replace(gen_random_uuid()::text, '-', ''),
  constraint api_token_name check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  constraint api_token_role check (role in ('reader', 'operator')),
  constraint api_token_hash check (octet_length(hash) = 32),
  constraint api_token_files_key check (files_key ~ '^[0-9a-f]{32}$'),
  constraint api_token_revoked_by_someone check ((revoked_at is null) = (revoked_by is null))
);
comment on table holdfast.api_token is
  'Tokens for the page and the HTTP API. The token itself is not stored.';
comment on column holdfast.api_token.name is 'Name of the token. Commands given with it are recorded under this name.';
comment on column holdfast.api_token.role is 'Permissions: reader or operator.';
comment on column holdfast.api_token.hash is 'SHA-256 of the token, which has 256 random bits.';
comment on column holdfast.api_token.created_at is 'Time at which the token was created.';
comment on column holdfast.api_token.created_by is 'User who created the token.';
comment on column holdfast.api_token.expires_at is 'Time at which the token becomes invalid; NULL: never.';
comment on column holdfast.api_token.revoked_at is 'Time at which the token was revoked; NULL: not revoked.';
comment on column holdfast.api_token.revoked_by is 'User who revoked the token.';
comment on column holdfast.api_token.files_key is
  'Prefix of the addresses of archived files that this token is shown; they are valid as long as the token.';
comment on index holdfast.api_token_files_key_key is 'The token that an address belongs to.';
comment on index holdfast.api_token_hash_key is 'The token that a request carries.';

create table holdfast.api_request (
  caller text not null,
  key text not null,
  body_hash bytea not null,
  crawl_id uuid not null,
  at timestamptz not null default clock_timestamp(),
  constraint api_request_pkey primary key (caller, key) include (crawl_id),
  constraint api_request_key check (length(key) between 1 and 255),
  constraint api_request_body_hash check (octet_length(body_hash) = 32)
);
comment on table holdfast.api_request is
  'Idempotency keys of requests that add crawls. No foreign key: a row is written before its crawl.';
comment on column holdfast.api_request.caller is 'Sender: the name of a token.';
comment on column holdfast.api_request.key is 'Idempotency-Key, as sent.';
comment on column holdfast.api_request.body_hash is 'SHA-256 of the body. Another body needs another key.';
comment on column holdfast.api_request.crawl_id is 'Crawl that the request adds.';
comment on column holdfast.api_request.at is 'Time of the first request. After a day, the key is free again.';
create index api_request_by_time on holdfast.api_request (at);
comment on index holdfast.api_request_by_time is 'Keys that are a day old.';
comment on index holdfast.api_request_pkey is 'The crawl of a key.';
