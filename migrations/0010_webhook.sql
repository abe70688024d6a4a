-- Webhooks by a transactional outbox: an event and its deliveries are one commit. A worker or runner that has
-- the signing secret delivers them, under a claim that ends by itself.

create function holdfast.webhook_events()
  returns text[] language sql immutable parallel safe as $$
  select '{crawl.sealed,snapshot.failed,page.changed,watch.matched,worker.lapsed,persona.signed_out}'::text[]
$$;
comment on function holdfast.webhook_events is 'Events that webhooks may receive.';

create table holdfast.webhook (
  name text primary key,
  url text not null, events text[] not null,
  enabled boolean not null default true,
  created_at timestamptz not null default clock_timestamp(),
  changed_by text not null default '',
  note text,
  failures integer not null default 0,
  hold_until timestamptz, asked_at timestamptz, delivered_at timestamptz,
  delivered bigint not null default 0, given_up bigint not null default 0,
  last_status integer, last_error text,
  constraint webhook_name check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$' or url in ('mailto:' || name, name)),
  constraint webhook_url check (
    (url ~ '^https?://[^/?#@]+/' or url ~ '^mailto:[^@\s<>,;"\\]+@[^@\s<>,;"\\]+$'
     or url ~ '^apprise:[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$')
    and length(url) <= 2048),
  constraint webhook_events check (
    (cardinality(events) > 0 or url !~ '^http') and events <@ holdfast.webhook_events())
);
comment on table holdfast.webhook is
  'Receivers of events. The secret is in webhooks.secret_file, never here.';
comment on column holdfast.webhook.name is 'Name of the webhook.';
comment on column holdfast.webhook.url is
  'Destination of deliveries: http, https, mailto:ADDRESS or apprise:TAG. The URL may contain a token, so views '
  'show only its origin.';
comment on column holdfast.webhook.events is
  'Events to deliver, of webhook_events(). None: only the notices of watches that name it.';
comment on column holdfast.webhook.enabled is 'False: nothing is sent, and no new events are recorded.';
comment on column holdfast.webhook.created_at is 'Time at which the webhook was added.';
comment on column holdfast.webhook.changed_by is 'User who changed the webhook last.';
comment on column holdfast.webhook.note is 'Reason why the webhook is disabled.';
comment on column holdfast.webhook.failures is 'Failures in a row.';
comment on column holdfast.webhook.hold_until is 'After a failure, nothing is sent before this.';
comment on column holdfast.webhook.asked_at is 'Time at which a sender last checked for deliveries, to half a minute.';
comment on column holdfast.webhook.delivered_at is 'Time of the last successful delivery.';
comment on column holdfast.webhook.delivered is 'Deliveries that succeeded.';
comment on column holdfast.webhook.given_up is 'Deliveries that were given up.';
comment on column holdfast.webhook.last_status is 'HTTP status of the last answer; NULL: no answer.';
comment on column holdfast.webhook.last_error is 'Error of the last attempt; NULL: no error.';

create table holdfast.delivery (
  id bigint generated always as identity primary key,
  webhook text not null references holdfast.webhook (name) on delete cascade,
  event text not null, object_id uuid, payload text not null,
  status text not null default 'waiting',
  created_at timestamptz not null default clock_timestamp(),
  retry_at timestamptz default clock_timestamp(),
  owner text, fence bigint not null default 0,
  attempts integer not null default 0,
  last_status integer, last_error text,
  ended_at timestamptz,
  constraint delivery_status check (status in ('waiting', 'delivered', 'given_up')),
  constraint delivery_ended check ((status = 'waiting') = (ended_at is null)),
  constraint delivery_due check ((status = 'waiting') = (retry_at is not null)),
  constraint delivery_owner check (owner is null or status = 'waiting')
) with (fillfactor = 70);
comment on table holdfast.delivery is
  'The outbox: what is or was to be sent, written by the transaction of the event.';
comment on column holdfast.delivery.id is
  'Order of recording; with the id of the collection the webhook-id header.';
comment on column holdfast.delivery.webhook is 'The receiver.';
comment on column holdfast.delivery.event is 'One of webhook_events(), or test.';
comment on column holdfast.delivery.object_id is 'Crawl, snapshot or process. No foreign key: it may be removed.';
comment on column holdfast.delivery.payload is 'The body, sent byte for byte.';
comment on column holdfast.delivery.status is 'waiting, delivered or given_up.';
comment on column holdfast.delivery.created_at is 'Time of the event.';
comment on column holdfast.delivery.retry_at is 'Due time; while the row has an owner: end of the claim.';
comment on column holdfast.delivery.owner is 'Sender that has claimed the row; NULL: none.';
comment on column holdfast.delivery.fence is
  'Grows with each claim; a report with an older fence changes nothing.';
comment on column holdfast.delivery.attempts is 'Attempts begun.';
comment on column holdfast.delivery.last_status is 'HTTP status of the last answer.';
comment on column holdfast.delivery.last_error is 'Why the last attempt failed.';
comment on column holdfast.delivery.ended_at is 'Time at which it was delivered or given up.';
create index delivery_due on holdfast.delivery (webhook, retry_at) where status = 'waiting';
comment on index holdfast.delivery_due is 'Due deliveries of a webhook.';
create index delivery_by_end on holdfast.delivery (ended_at) where status <> 'waiting';
comment on index holdfast.delivery_by_end is 'For trimming.';
create index delivery_by_object on holdfast.delivery (object_id);
comment on index holdfast.delivery_by_object is 'Deliveries about an object.';
