-- What was cancelled, on its own or because its crawl's scope excluded it, is not what failed.

alter table holdfast.crawl
  add column snapshots_cancelled bigint not null default 0,
  add constraint crawl_cancelled_among_failed check (snapshots_cancelled between 0 and snapshots_failed);
comment on column holdfast.crawl.snapshots_failed is 'Sealed with any other outcome, cancelled ones included: v_crawl shows them apart.';
comment on column holdfast.crawl.snapshots_cancelled is 'Of snapshots_failed: sealed as cancelled.';

update holdfast.crawl c set snapshots_cancelled = n.count
  from (select e.crawl_id, count(*) as count from holdfast.snapshot_sealed e where e.outcome = 'cancelled' group by e.crawl_id) n
  where c.id = n.crawl_id;

create or replace function holdfast.webhook_crawl_sealed() returns trigger language plpgsql as $$
begin
  perform holdfast.webhook_tell('crawl.sealed', new.id, jsonb_build_object('id', new.id, 'label', nullif(new.label, ''), 'first_url', new.first_url,
    'outcome', new.outcome, 'stop_reason', new.stop_reason, 'snapshots', new.snapshots_total, 'succeeded', new.snapshots_succeeded,
    'partial', new.snapshots_partial, 'failed', new.snapshots_failed - new.snapshots_cancelled, 'cancelled', new.snapshots_cancelled,
    'bytes', new.bytes, 'tags', new.tags));
  return null;
end $$;
