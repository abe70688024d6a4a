-- People who sign in to sites by hand, through a browser on a worker.

create table holdfast.persona_sign_in (
  persona text primary key references holdfast.persona (name) on delete cascade,
  id uuid not null unique,
  url text not null,
  asked_by text not null,
  asked_at timestamptz not null default clock_timestamp(),
  deadline timestamptz not null,
  viewer text,
  key_hash bytea,
  process_id uuid references holdfast.process (id) on delete cascade,
  address inet, port integer, certificate bytea,
  problem text,
  constraint persona_sign_in_key_hash check (octet_length(key_hash) = 32),
  constraint persona_sign_in_certificate check (octet_length(certificate) = 32),
  constraint persona_sign_in_port
    check (num_nonnulls(address, port, certificate) = 0
           or (num_nulls(address, port, certificate, process_id) = 0 and port between 1 and 65535))
);
comment on table holdfast.persona_sign_in is
  'Sign-ins that are under way: at most one for each persona. A row ends with its sign-in. What a person '
  'types is stored nowhere.';
comment on column holdfast.persona_sign_in.persona is 'The persona that gets the state of the browser.';
comment on column holdfast.persona_sign_in.id is 'Its page is /persona/ID.';
comment on column holdfast.persona_sign_in.url is 'Where the browser begins.';
comment on column holdfast.persona_sign_in.asked_by is 'Who asked for it.';
comment on column holdfast.persona_sign_in.asked_at is 'When.';
comment on column holdfast.persona_sign_in.deadline is 'When the browser ends, whatever is done.';
comment on column holdfast.persona_sign_in.viewer is
  'The person who opened the view first; no other may. NULL: it was not opened yet.';
comment on column holdfast.persona_sign_in.key_hash is
  'SHA-256 of a key with which a server connects once to the browser. NULL: it was used.';
comment on column holdfast.persona_sign_in.process_id is 'The worker that has the browser; NULL: none yet.';
comment on column holdfast.persona_sign_in.address is
  'Where the browser can be reached: worker.address, or the address of the worker as this database sees it; '
  'NULL: not yet.';
comment on column holdfast.persona_sign_in.port is 'The port there.';
comment on column holdfast.persona_sign_in.certificate is
  'SHA-256 of the certificate that the worker has made for its sign-ins. A server accepts no other.';
comment on column holdfast.persona_sign_in.problem is
  'Why its browser never was ready. NULL: nothing is known to be wrong.';
comment on index holdfast.persona_sign_in_id_key is 'The sign-in of a page.';
create index persona_sign_in_by_process on holdfast.persona_sign_in (process_id);
comment on index holdfast.persona_sign_in_by_process is 'Sign-ins of a worker.';
