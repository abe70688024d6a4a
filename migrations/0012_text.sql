-- The text of archived pages, for search(). Written by the worker right after the seal. It is made from
-- files of the archive, so `holdfast search --rebuild` can make it again.

create table holdfast.page_text (
  snapshot_id uuid not null, crawl_id uuid not null,
  language text not null,
  text text not null,
  words tsvector not null,
  constraint page_text_pkey primary key (snapshot_id, crawl_id),
  constraint page_text_bounded check (octet_length(text) <= 1048576)
) partition by range (crawl_id);
comment on table holdfast.page_text is 'The readable text of sealed snapshots. See search().';
comment on column holdfast.page_text.snapshot_id is 'The snapshot.';
comment on column holdfast.page_text.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.page_text.language is
  'Text search configuration: english, german, ...; simple: unknown language.';
comment on column holdfast.page_text.text is 'Text from which excerpts are cut.';
comment on column holdfast.page_text.words is
  'Words of title (A), URL and tags (B), notes (C) and text (D), pairs of stop words, and "host:<host>".';
-- lz4 compresses five times as fast as pglz, to the same size. Not every PostgreSQL is built with it.
do $$ begin
  alter table holdfast.page_text
    alter column text set compression lz4,
    alter column words set compression lz4;
exception when feature_not_supported then null;
end $$;
create table holdfast.page_text_other partition of holdfast.page_text (
  constraint page_text_sealed foreign key (snapshot_id, crawl_id)
    references holdfast.snapshot_sealed_other (snapshot_id, crawl_id) on delete cascade
) default;
create index page_text_words on holdfast.page_text using gin (words);
comment on index holdfast.page_text_words is 'Pages that have a word.';

create index page_text_titles on holdfast.page_text using gin (ts_filter(words, '{a}'));
comment on index holdfast.page_text_titles is 'Pages that have a word in their title.';

create table holdfast.text_language (
  language text primary key
);
comment on table holdfast.text_language is 'Languages of page_text. A query is read in each of them.';
comment on column holdfast.text_language.language is 'See page_text.language.';
insert into holdfast.text_language values ('simple');
