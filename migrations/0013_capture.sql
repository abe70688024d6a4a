-- Index of the archive's WARC files, as in CDX: the record for each URL and time. Also how well they replay.

create table holdfast.capture (
  snapshot_id uuid not null, crawl_id uuid not null,
  file text not null, record_offset bigint not null, record_length bigint not null,
  url_key text not null collate "C",
  at timestamptz not null,
  url text not null,
  status integer, mime text not null, digest text not null,
  refers_to text collate "C",
  constraint capture_pkey primary key (snapshot_id, crawl_id, file, record_offset),
  constraint capture_file check (file ~ '\.warc(\.gz)?$' and file !~ '(^|/)\.{0,2}(/|$)'),
  constraint capture_record check (record_offset >= 0 and record_length > 0),
  constraint capture_url_key check (octet_length(url_key) <= 2000 and url_key ~ '^[!-~]+$'),
  constraint capture_url check (url ~ '^[!-~]+$'),
  constraint capture_status check (status between 100 and 999),
  constraint capture_mime check (mime ~ '^[!-~]+$'),
  constraint capture_digest check (digest ~ '^[!-~]+$'),
  constraint capture_refers_to check (
    refers_to is null
    or mime = 'warc/revisit' and octet_length(refers_to) <= 2000 and refers_to ~ '^[!-~]+$')
) partition by range (crawl_id);
create table holdfast.capture_other partition of holdfast.capture (
  constraint capture_sealed foreign key (snapshot_id, crawl_id)
    references holdfast.snapshot_sealed_other (snapshot_id, crawl_id) on delete cascade
) default;
comment on table holdfast.capture is
  'Record of a WARC file that can be replayed. Written with the seal; see v_capture.';
comment on column holdfast.capture.snapshot_id is 'Snapshot that has the file.';
comment on column holdfast.capture.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.capture.file is 'The WARC file, below the directory of the attempt.';
comment on column holdfast.capture.record_offset is 'Offset of the record in the file.';
comment on column holdfast.capture.record_length is 'Length of the record in the file, in bytes.';
comment on column holdfast.capture.url_key is 'The URL by the SURT rules, for lookup.';
comment on column holdfast.capture.at is 'Time of the capture (WARC-Date).';
comment on column holdfast.capture.url is 'The URL (WARC-Target-URI).';
comment on column holdfast.capture.status is 'HTTP status; NULL: none.';
comment on column holdfast.capture.mime is
  'Media type; warc/revisit: a repetition of another record; unk: unknown.';
comment on column holdfast.capture.digest is 'Digest of the payload, as sha1:...';
comment on column holdfast.capture.refers_to is
  'For a revisit record: the URL key whose record has the payload, if it differs from url_key.';
create index capture_by_url on holdfast.capture (url_key, at);
comment on index holdfast.capture_by_url is 'Captures of a URL, of a host, or of what begins with a URL.';
-- A payload is known by its URL and digest. The hash of both is small and quick to compare.
create index capture_payload on holdfast.capture (hashtextextended(url_key || ' ' || digest, 0))
  where mime <> 'warc/revisit';
comment on index holdfast.capture_payload is 'Records that hold a payload.';
create index capture_revisit
  on holdfast.capture (hashtextextended(coalesce(refers_to, url_key) || ' ' || digest, 0))
  where mime = 'warc/revisit';
comment on index holdfast.capture_revisit is 'Revisit records that refer to a payload.';

create table holdfast.kept_capture (
  snapshot_id uuid not null, position integer not null,
  crawl_id uuid not null,
  source_file text not null, source_offset bigint not null, record_length bigint not null,
  moved boolean not null default false,
  url_key text not null collate "C",
  at timestamptz not null,
  url text not null,
  status integer, mime text not null, digest text not null,
  constraint kept_capture_pkey primary key (snapshot_id, crawl_id, position)
);
comment on table holdfast.kept_capture is
  'Record of a removed snapshot to which revisit records of other snapshots refer. Kept as long as they exist.';
comment on column holdfast.kept_capture.snapshot_id is 'Removed snapshot. No foreign key: its row is deleted.';
comment on column holdfast.kept_capture.position is
  'Number of the record among the kept ones of this snapshot: 1, 2, ...';
comment on column holdfast.kept_capture.crawl_id is
  'Crawl of the removed snapshot. No foreign key: it may be removed too.';
comment on column holdfast.kept_capture.source_file is 'Former WARC file of the record, below the archive root.';
comment on column holdfast.kept_capture.source_offset is 'Offset of the record in source_file.';
comment on column holdfast.kept_capture.record_length is 'Length of the record in bytes.';
comment on column holdfast.kept_capture.moved is
  'True: the record has a file of its own below kept/. False: it is still in source_file, which waits to be deleted.';
comment on column holdfast.kept_capture.url_key is 'See capture.url_key.';
comment on column holdfast.kept_capture.at is 'See capture.at.';
comment on column holdfast.kept_capture.url is 'See capture.url.';
comment on column holdfast.kept_capture.status is 'See capture.status.';
comment on column holdfast.kept_capture.mime is 'See capture.mime.';
comment on column holdfast.kept_capture.digest is 'See capture.digest.';
create index kept_capture_by_url on holdfast.kept_capture (url_key, at);
comment on index holdfast.kept_capture_by_url is 'See capture_by_url.';
create index kept_capture_payload on holdfast.kept_capture (hashtextextended(url_key || ' ' || digest, 0));
comment on index holdfast.kept_capture_payload is 'See capture_payload.';

create table holdfast.removed_capture (like holdfast.capture including comments);
comment on table holdfast.removed_capture is
  'Records of the pages in removed_page, replayed until their page is in purge. The children were partitions of '
  'capture. No foreign keys: page and crawl do not exist any more.';

create table holdfast.replay_quality (
  snapshot_id uuid not null, crawl_id uuid not null,
  at timestamptz not null default clock_timestamp(),
  screenshot real, text real, resources real,
  missing integer not null default 0,
  problem text not null default '',
  constraint replay_quality_pkey primary key (snapshot_id, crawl_id),
  constraint replay_quality_sealed foreign key (snapshot_id, crawl_id)
    references holdfast.snapshot_sealed (snapshot_id, crawl_id) on delete cascade,
  constraint replay_quality_screenshot check (screenshot between 0 and 1),
  constraint replay_quality_text check (text between 0 and 1),
  constraint replay_quality_resources check (resources between 0 and 1),
  constraint replay_quality_missing check (missing >= 0)
);
comment on table holdfast.replay_quality is
  'Result of the last replay of a snapshot. Written by holdfast verify --replay; see v_replay_quality.';
comment on column holdfast.replay_quality.snapshot_id is 'The snapshot.';
comment on column holdfast.replay_quality.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.replay_quality.at is 'Time of the replay.';
comment on column holdfast.replay_quality.screenshot is
  'Share of the pixels that equal those of the screenshot; NULL: there is none.';
comment on column holdfast.replay_quality.text is
  'Share of the words that equal those of the page; NULL: the capture saved no page.';
comment on column holdfast.replay_quality.resources is
  'Share of the URLs that the browser loaded in both; NULL: the browser recorded none.';
comment on column holdfast.replay_quality.missing is 'URLs that the replayed page requested and did not get.';
comment on column holdfast.replay_quality.problem is
  'Reason why the snapshot could not be replayed; empty: it was replayed.';
