-- What lists with filters need in a large collection.

create index archive_result_unusual on holdfast.archive_result (status, snapshot_id, crawl_id) where status in ('failed', 'skipped', 'noresults');
comment on index holdfast.archive_result_unusual is 'Results of a status, newest snapshots first, of all or of one crawl.';
create index snapshot_by_tag on holdfast.snapshot using gin (tags) where tags <> '{}';
comment on index holdfast.snapshot_by_tag is 'Snapshots with a tag. Costs nothing where there is none.';
create index snapshot_sealed_by_tag on holdfast.snapshot_sealed using gin (tags) where tags <> '{}';
comment on index holdfast.snapshot_sealed_by_tag is 'Sealed snapshots with a tag, also one that was found. Costs nothing where there is none.';
