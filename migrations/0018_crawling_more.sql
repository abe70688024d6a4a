-- A page that was found on one that is removed later says where it was found, and names nothing that is gone.

alter table holdfast.snapshot
  add column found_on text,
  add constraint snapshot_found_on_or_parent check (found_on is null or parent_id is null);
comment on column holdfast.snapshot.parent_id is 'Snapshot on whose page the URL was found. Never one that is gone: removing it (snapshot_remove) writes its URL to found_on instead.';
comment on column holdfast.snapshot.found_on is 'URL of the page on which this one was found, once that snapshot has been removed. v_snapshot has it for all.';
create index snapshot_by_parent on holdfast.snapshot (parent_id) where parent_id is not null;
comment on index holdfast.snapshot_by_parent is 'What was found on a page that is to be removed.';

-- Of those removed before this, the URL is lost.
update holdfast.snapshot s set parent_id = null
  where s.parent_id is not null and not exists (select from holdfast.snapshot p where p.id = s.parent_id and p.crawl_id = s.crawl_id);

-- They return now what they have locked.
drop function if exists holdfast.held_lock(uuid[]);

create index process_by_system on holdfast.process (start_ticks, pid);
comment on index holdfast.process_by_system is 'What a node was told that comes back with a new id.';
