-- Shelves: named sets of pages, and links that share a page or a shelf.

create table holdfast.shelf (
  id uuid primary key,
  name text not null unique,
  description text not null default '',
  cover uuid,
  rule jsonb,
  version bigint not null default 1,
  created_at timestamptz not null default clock_timestamp(), created_by text not null,
  changed_at timestamptz not null default clock_timestamp(), changed_by text not null,
  constraint shelf_name check (name = btrim(name) and length(name) between 1 and 200 and name !~ '[[:cntrl:]]'),
  constraint shelf_description check (length(description) <= 10000),
  constraint shelf_rule check (jsonb_typeof(rule) = 'object' and rule <> '{}')
);
comment on table holdfast.shelf is 'Named sets of pages of any crawls: filled by hand (shelf_page), or by a rule.';
comment on column holdfast.shelf.id is 'UUID version 7.';
comment on column holdfast.shelf.name is 'Name for people.';
comment on column holdfast.shelf.description is 'Text for people.';
comment on column holdfast.shelf.cover is
  'Snapshot whose picture stands for the shelf. No foreign key: it may be removed. NULL: the first page.';
comment on column holdfast.shelf.rule is
  'Filters of the pages: q, tag, host, url, outcome, since, until, crawl, captures. NULL: filled by hand.';
comment on column holdfast.shelf.version is 'Grows when name, description, cover or rule change.';
comment on column holdfast.shelf.created_at is 'Time at which the shelf was made.';
comment on column holdfast.shelf.created_by is 'User who made the shelf.';
comment on column holdfast.shelf.changed_at is 'Time of the last change, also of pages put or taken by hand.';
comment on column holdfast.shelf.changed_by is 'User of the last change.';
comment on index holdfast.shelf_name_key is 'The shelf of a name.';

create table holdfast.shelf_page (
  shelf_id uuid not null references holdfast.shelf (id) on delete cascade,
  snapshot_id uuid not null,
  crawl_id uuid not null references holdfast.crawl (id) on delete cascade,
  position numeric not null,
  added_at timestamptz not null default clock_timestamp(), added_by text not null,
  constraint shelf_page_pkey primary key (shelf_id, snapshot_id)
);
comment on table holdfast.shelf_page is
  'Pages of shelves that are filled by hand. snapshot_remove() deletes the rows of its snapshot.';
comment on column holdfast.shelf_page.shelf_id is 'The shelf.';
comment on column holdfast.shelf_page.snapshot_id is
  'The page. No foreign key: one to a partitioned table would be checked whenever a month is removed.';
comment on column holdfast.shelf_page.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.shelf_page.position is
  'Order on the shelf. A fraction, so that a page can be put between two others without moving them.';
comment on column holdfast.shelf_page.added_at is 'Time at which the page was put on the shelf.';
comment on column holdfast.shelf_page.added_by is 'User who put the page on the shelf.';
create unique index shelf_page_in_order on holdfast.shelf_page (shelf_id, position);
comment on index holdfast.shelf_page_in_order is 'Pages of a shelf in its order, page by page.';
create index shelf_page_by_snapshot on holdfast.shelf_page (crawl_id, snapshot_id);
comment on index holdfast.shelf_page_by_snapshot is 'Rows of a crawl or snapshot that is removed.';

create table holdfast.share (
  id text primary key,
  hash bytea not null unique,
  shelf_id uuid references holdfast.shelf (id) on delete cascade,
  snapshot_id uuid,
  url text,
  created_at timestamptz not null default clock_timestamp(), created_by text not null,
  expires_at timestamptz not null,
  revoked_at timestamptz, revoked_by text,
  constraint share_hash check (octet_length(hash) = 32),
  constraint share_shows_one_thing check (num_nonnulls(shelf_id, snapshot_id, url) = 1),
  constraint share_expires check (expires_at between created_at and created_at + interval '5 years'),
  constraint share_revoked_by_someone check ((revoked_at is null) = (revoked_by is null))
);
comment on table holdfast.share is
  'Links by which anyone may read a snapshot, the captures of a URL, or a shelf. The link itself is not stored.';
comment on column holdfast.share.id is 'Name of the link, which reveals nothing of it.';
comment on column holdfast.share.hash is 'SHA-256 of the secret in the link, which has 256 random bits.';
comment on column holdfast.share.shelf_id is 'The shelf. A removed shelf removes its links.';
comment on column holdfast.share.snapshot_id is 'The snapshot. No foreign key: it may be removed.';
comment on column holdfast.share.url is 'The URL whose captures are shown.';
comment on column holdfast.share.created_at is 'Time at which the link was made.';
comment on column holdfast.share.created_by is 'User who made the link.';
comment on column holdfast.share.expires_at is 'Time at which the link becomes invalid.';
comment on column holdfast.share.revoked_at is 'Time at which the link was revoked; NULL: not revoked.';
comment on column holdfast.share.revoked_by is 'User who revoked the link.';
comment on index holdfast.share_hash_key is 'The link that a request carries.';
create index share_by_shelf on holdfast.share (shelf_id) where shelf_id is not null;
comment on index holdfast.share_by_shelf is 'Links of a shelf that is removed.';
