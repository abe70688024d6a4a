-- Archiving again only what is missing of a page (add --update), and pages of crawls that no longer say what is there.

alter table holdfast.crawl
  add column wanted text[] not null default '{}',
  add constraint crawl_wanted_to_complete check (wanted = '{}' or only_complete);
comment on column holdfast.crawl.wanted is 'With only_complete: the plugins whose results a page must have to be left out, as they were where the crawl was added. Empty: how its snapshot ended decides.';

create table holdfast.crawl_page_stale (
  crawl_id uuid not null,
  since timestamptz not null default clock_timestamp(),
  constraint crawl_page_stale_pkey primary key (crawl_id)
);
comment on table holdfast.crawl_page_stale is 'Pages of crawls (crawls/<id>/index.html in the archive) to be written: the crawl was sealed, or something of it was changed or removed since. If the crawl is gone, its page is to be deleted. Whoever has the archive does that: the node that sealed it, remove, the runner, or any node after a minute.';
comment on column holdfast.crawl_page_stale.crawl_id is 'The crawl. No foreign key: it may be gone, its page not.';
comment on column holdfast.crawl_page_stale.since is 'When its page became wrong, last.';
