-- Personas: what signs a browser in, so that pages behind a login can be archived by any worker.

create table holdfast.persona (
  name text primary key,
  version bigint not null default 0,
  state bytea, key_id text,
  options jsonb not null default '{}',
  hosts text[] not null default '{}',
  worker_label text,
  checks jsonb not null default '[{"kind": "login", "value": "", "signed_out": true, "url": ""}]',
  signed_out_at timestamptz, signed_out_reason text,
  notes text not null default '',
  created_at timestamptz not null default clock_timestamp(),
  changed_at timestamptz not null default clock_timestamp(), changed_by text not null default '',
  constraint persona_name check (name ~ '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$' and name <> 'none'),
  constraint persona_sealed check ((state is null) = (key_id is null) and (state is null) = (version = 0)),
  constraint persona_state_size check (octet_length(state) <= 67108864),
  constraint persona_options check (jsonb_typeof(options) = 'object'),
  constraint persona_checks check (jsonb_typeof(checks) = 'array'),
  constraint persona_signed_out_for_a_reason check ((signed_out_at is null) = (signed_out_reason is null))
);
comment on table holdfast.persona is
  'Named sets of browser state (cookies, storage, credentials), encrypted with a key that the database does not have.';
comment on column holdfast.persona.name is 'Name of the persona.';
comment on column holdfast.persona.version is
  'Counts the states of the persona. A write names the version that it replaces, so that no write undoes another.';
comment on column holdfast.persona.state is
  'State of the persona, encrypted and authenticated with its name and version (lib/persona/key_ring.hpp). NULL: '
  'none yet.';
comment on column holdfast.persona.key_id is 'Key that encrypted the state: the first 8 digits of the key''s SHA-256.';
comment on column holdfast.persona.options is 'Options for hooks ("USER_AGENT": "..."), none of them secret.';
comment on column holdfast.persona.hosts is
  'A crawl with seeds on these hosts, or below them, gets this persona unless it names another.';
comment on column holdfast.persona.worker_label is
  'Only workers with this label (worker.labels, or their host name) use the persona. NULL: any.';
comment on column holdfast.persona.checks is
  'Checks that a page shows the persona signed in, or signed out (signed_out): [{"kind": "text", "value": "Log out", '
  '"signed_out": false, "url": "https://..."}]. Empty: only an answer 401 counts as signed out.';
comment on column holdfast.persona.signed_out_at is 'Time at which the persona was found signed out. NULL: it is not.';
comment on column holdfast.persona.signed_out_reason is 'Check that found the persona signed out.';
comment on column holdfast.persona.notes is 'Notes of users.';
comment on column holdfast.persona.created_at is 'Time at which the persona was created.';
comment on column holdfast.persona.changed_at is 'Time of the last change of the state or a setting.';
comment on column holdfast.persona.changed_by is 'User who changed the persona last.';
