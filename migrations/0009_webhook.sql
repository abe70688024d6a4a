-- Webhooks through a transactional outbox: what happened and what is to be sent about it are one commit, so that neither is there
-- without the other. Whoever has the secret delivers: any node or runner, under a claim that ends by itself.

create table holdfast.webhook (
  name text primary key,
  url text not null,
  events text[] not null,
  enabled boolean not null default true,
  created_at timestamptz not null default clock_timestamp(),
  changed_by text not null default '',
  note text,
  failures integer not null default 0,
  hold_until timestamptz,
  asked_at timestamptz,
  delivered_at timestamptz,
  delivered bigint not null default 0,
  given_up bigint not null default 0,
  last_status integer,
  last_error text,
  constraint webhook_name check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  constraint webhook_url check (url ~ '^https?://[^/?#@]+/' and length(url) <= 2048),
  constraint webhook_events check (cardinality(events) > 0 and events <@ '{crawl.sealed,snapshot.failed,node.lost}'::text[])
);
comment on table holdfast.webhook is 'Addresses that are told what happens. The secret that signs is in a file of whoever delivers (webhooks.secret_file), never here.';
comment on column holdfast.webhook.name is 'Name it was given.';
comment on column holdfast.webhook.url is 'Where to. May hold a token of the receiver''s, so views show its origin only.';
comment on column holdfast.webhook.events is 'What it is told: crawl.sealed, snapshot.failed, node.lost.';
comment on column holdfast.webhook.enabled is 'False: nothing is sent, and nothing new is written down for it.';
comment on column holdfast.webhook.created_at is 'When it was added.';
comment on column holdfast.webhook.changed_by is 'Who changed it last.';
comment on column holdfast.webhook.note is 'Why it is not enabled.';
comment on column holdfast.webhook.failures is 'Failures in a row.';
comment on column holdfast.webhook.hold_until is 'After a failure nothing is sent before this, whatever waits.';
comment on column holdfast.webhook.asked_at is 'When somebody who has the secret last asked for work; kept to half a minute.';
comment on column holdfast.webhook.delivered_at is 'When a delivery last succeeded.';
comment on column holdfast.webhook.delivered is 'Deliveries that succeeded.';
comment on column holdfast.webhook.given_up is 'Deliveries that were given up.';
comment on column holdfast.webhook.last_status is 'HTTP status of the last answer; NULL: there was none.';
comment on column holdfast.webhook.last_error is 'Why the last attempt failed; NULL if it did not.';

create table holdfast.delivery (
  id bigint generated always as identity primary key,
  webhook text not null references holdfast.webhook (name) on delete cascade,
  event text not null,
  object_id uuid,
  payload text not null,
  status text not null default 'waiting',
  created_at timestamptz not null default clock_timestamp(),
  retry_at timestamptz default clock_timestamp(),
  owner text,
  fence bigint not null default 0,
  attempts integer not null default 0,
  last_status integer,
  last_error text,
  ended_at timestamptz,
  constraint delivery_status check (status in ('waiting', 'delivered', 'given_up')),
  constraint delivery_ended check ((status = 'waiting') = (ended_at is null)),
  constraint delivery_due check ((status = 'waiting') = (retry_at is not null)),
  constraint delivery_owner check (owner is null or status = 'waiting')
);
alter table holdfast.delivery set (fillfactor = 70);
comment on table holdfast.delivery is 'The outbox: what is to be sent to a webhook, or was. Written by the transaction that made it happen.';
comment on column holdfast.delivery.id is 'Order of recording; with the collection''s id the webhook-id header, the same in every attempt.';
comment on column holdfast.delivery.webhook is 'To whom.';
comment on column holdfast.delivery.event is 'crawl.sealed, snapshot.failed, node.lost or test.';
comment on column holdfast.delivery.object_id is 'The crawl, snapshot or process.';
comment on column holdfast.delivery.payload is 'The body that is sent, byte for byte.';
comment on column holdfast.delivery.status is 'waiting, delivered or given_up.';
comment on column holdfast.delivery.created_at is 'When it happened.';
comment on column holdfast.delivery.retry_at is 'When it is due. While somebody has it: when the claim ends by itself.';
comment on column holdfast.delivery.owner is 'Who is sending it just now.';
comment on column holdfast.delivery.fence is 'Grows with each claim; a report that names an older one changes nothing.';
comment on column holdfast.delivery.attempts is 'Attempts begun.';
comment on column holdfast.delivery.last_status is 'HTTP status of the last answer.';
comment on column holdfast.delivery.last_error is 'Why the last attempt failed.';
comment on column holdfast.delivery.ended_at is 'When it was delivered or given up.';
create index delivery_due on holdfast.delivery (webhook, retry_at) where status = 'waiting';
create index delivery_by_end on holdfast.delivery (ended_at) where status <> 'waiting';
create index delivery_by_object on holdfast.delivery (object_id);

insert into holdfast.lifecycle_edge (lifecycle, from_state, event, to_state, why) values
  ('delivery', 'waiting', 'deliver', 'delivered', 'its receiver said yes'),
  ('delivery', 'waiting', 'give_up', 'given_up', 'its receiver did not say yes for too long'),
  ('delivery', 'given_up', 'retry', 'waiting', 'somebody wants it tried again');
create trigger delivery_lifecycle before update of status on holdfast.delivery
  for each row when (old.status is distinct from new.status) execute function holdfast.lifecycle_guard('delivery', 'quiet');

create function holdfast.webhook_tell(p_event text, p_object uuid, p_data jsonb) returns void language plpgsql as $$
-- The body is made once, here: every attempt sends the same bytes.
declare
  v_payload constant text := jsonb_build_object('type', p_event, 'timestamp', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'data', jsonb_strip_nulls(p_data))::text;
begin
  insert into holdfast.delivery (webhook, event, object_id, payload)
    select w.name, p_event, p_object, v_payload from holdfast.webhook w where w.enabled and p_event = any (w.events);
  if found then perform pg_notify('holdfast_webhook', ''); end if;
end $$;
comment on function holdfast.webhook_tell(text, uuid, jsonb) is 'Writes down what webhooks are to be told.';

create function holdfast.webhook_crawl_sealed() returns trigger language plpgsql as $$
begin
  perform holdfast.webhook_tell('crawl.sealed', new.id, jsonb_build_object('id', new.id, 'label', nullif(new.label, ''), 'first_url', new.first_url,
    'outcome', new.outcome, 'stop_reason', new.stop_reason, 'snapshots', new.snapshots_total, 'succeeded', new.snapshots_succeeded,
    'partial', new.snapshots_partial, 'failed', new.snapshots_failed, 'bytes', new.bytes, 'tags', new.tags));
  return null;
end $$;
comment on function holdfast.webhook_crawl_sealed() is 'Tells webhooks of a sealed crawl.';
create trigger webhook_crawl_sealed after update of status on holdfast.crawl
  for each row when (new.status = 'sealed' and old.status <> 'sealed') execute function holdfast.webhook_crawl_sealed();

create function holdfast.webhook_snapshot_failed() returns trigger language plpgsql as $$
begin
  if not exists (select from holdfast.webhook) then return null; end if;
  perform holdfast.webhook_tell('snapshot.failed', new.snapshot_id, jsonb_build_object('id', new.snapshot_id, 'crawl_id', new.crawl_id, 'outcome', new.outcome,
    'reason', new.reason, 'attempts', new.attempts,
    'url', (select s.url from holdfast.snapshot s where s.id = new.snapshot_id and s.crawl_id = new.crawl_id),
    'error', (select left(string_agg(r.plugin || ': ' || split_part(r.error, E'\n', 1), '; ' order by r.hook_name), 1000) from holdfast.archive_result r
                where r.snapshot_id = new.snapshot_id and r.crawl_id = new.crawl_id and r.fence = new.fence and r.status = 'failed')));
  return null;
end $$;
comment on function holdfast.webhook_snapshot_failed() is 'Tells webhooks of a failed snapshot.';
create trigger webhook_snapshot_failed after insert on holdfast.snapshot_sealed
  for each row when (new.outcome in ('failed', 'quarantined', 'refused')) execute function holdfast.webhook_snapshot_failed();

create function holdfast.webhook_node_lost() returns trigger language plpgsql as $$
begin
  perform holdfast.webhook_tell('node.lost', new.id, jsonb_build_object('id', new.id, 'label', new.label, 'type', new.process_type, 'machine', new.machine_id,
    'last_beat', new.beat_at, 'started_at', new.started_at));
  return null;
end $$;
comment on function holdfast.webhook_node_lost() is 'Tells webhooks of a lost node.';
create trigger webhook_node_lost after update of status on holdfast.process
  for each row when (new.status = 'exited' and old.status = 'running' and new.exit_reason = 'lease lapsed' and new.process_type in ('worker', 'orchestrator'))
  execute function holdfast.webhook_node_lost();

insert into holdfast.duty (name, every, function, batch, keep, about) values
  ('trim_deliveries', '10 minutes', 'duty_trim_deliveries', 5000, '30 days', 'forgets what webhooks were told long ago');
