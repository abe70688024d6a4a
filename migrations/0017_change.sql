-- Fingerprints of pages: what the next capture of a URL is compared with.

create table holdfast.fingerprint (
  url_hash bytea not null, persona text not null, kind text not null,
  snapshot_id uuid not null, crawl_id uuid not null,
  at timestamptz not null,
  digest bytea not null, body bytea not null, reuse jsonb not null default '{}',
  constraint fingerprint_pkey primary key (url_hash, persona, kind)
) with (fillfactor = 80);
alter table holdfast.fingerprint alter column body set storage external;
comment on table holdfast.fingerprint is
  'The latest capture of each URL, as hashes of its words, links and pictures, with the mask of noise. '
  'Written with the seal. No foreign key: removing a snapshot must not wait for the seal of the next one.';
comment on column holdfast.fingerprint.url_hash is 'See snapshot.url_hash.';
comment on column holdfast.fingerprint.persona is 'Persona of the capture; empty: none.';
comment on column holdfast.fingerprint.kind is
  'Kind of the capture: browser or file; with "#" and a digest if only a part of the page counts.';
comment on column holdfast.fingerprint.snapshot_id is 'The snapshot.';
comment on column holdfast.fingerprint.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.fingerprint.at is 'Time of the claim of that capture.';
comment on column holdfast.fingerprint.digest is 'Digest of the words, links and title without noise.';
comment on column holdfast.fingerprint.body is 'The fingerprint as CBOR (lib/change/fingerprint.hpp).';
comment on column holdfast.fingerprint.reuse is
  'Decides if a capture may show the files of the last one that hooks made, "from" (lib/change/reuse.hpp).';
create index fingerprint_by_snapshot on holdfast.fingerprint (snapshot_id);
comment on index holdfast.fingerprint_by_snapshot is 'Fingerprints of a removed snapshot.';

create index snapshot_sealed_changed on holdfast.snapshot_sealed (sealed_at)
  where facts ->> 'change' not in ('first', 'same');
comment on index holdfast.snapshot_sealed_changed is 'Changes of pages, by time.';
create index snapshot_sealed_change_from on holdfast.snapshot_sealed ((facts ->> 'change_from'))
  where facts ->> 'change' not in ('first', 'same');
comment on index holdfast.snapshot_sealed_change_from is 'Captures that a change refers to.';
create index snapshot_sealed_same on holdfast.snapshot_sealed (sealed_at) where facts ->> 'change' = 'same';
comment on index holdfast.snapshot_sealed_same is 'Captures that found no change, by time: which of them are kept.';
