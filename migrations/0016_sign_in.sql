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
  'Sign-ins under way: at most one for each persona. A row is deleted with the end of its sign-in. Typed text is '
  'stored nowhere.';
comment on column holdfast.persona_sign_in.persona is 'The persona that gets the state of the browser.';
comment on column holdfast.persona_sign_in.id is 'Id of the sign-in, whose page is /persona/ID.';
comment on column holdfast.persona_sign_in.url is 'First URL of the browser.';
comment on column holdfast.persona_sign_in.asked_by is 'User who requested the sign-in.';
comment on column holdfast.persona_sign_in.asked_at is 'Time of the request.';
comment on column holdfast.persona_sign_in.deadline is 'Time at which the browser ends in any case.';
comment on column holdfast.persona_sign_in.viewer is
  'User who opened the view first; no other user may open it. NULL: not opened yet.';
comment on column holdfast.persona_sign_in.key_hash is
  'SHA-256 of a key with which a server connects once to the browser. NULL: used.';
comment on column holdfast.persona_sign_in.process_id is 'The worker that has the browser; NULL: none yet.';
comment on column holdfast.persona_sign_in.address is
  'Address of the browser: worker.address, or the address of the worker as this database sees it; NULL: not yet '
  'known.';
comment on column holdfast.persona_sign_in.port is 'The port there.';
comment on column holdfast.persona_sign_in.certificate is
  'SHA-256 of the certificate that the worker has made for its sign-ins. A server accepts no other.';
comment on column holdfast.persona_sign_in.problem is
  'Reason why the browser is not available. NULL: no error is known.';
comment on index holdfast.persona_sign_in_id_key is 'The sign-in of a page.';
create index persona_sign_in_by_process on holdfast.persona_sign_in (process_id);
comment on index holdfast.persona_sign_in_by_process is 'Sign-ins of a worker.';
