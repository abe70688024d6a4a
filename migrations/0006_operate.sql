-- What looking at a large collection needs: each list and view finds its rows by an index, in the order in which it shows them.

create index snapshot_sealed_by_time on holdfast.snapshot_sealed (sealed_at);
comment on index holdfast.snapshot_sealed_by_time is 'What was sealed last: pages, v_status, throughput.';
create index archive_result_failed on holdfast.archive_result (ended_at) where status = 'failed';
comment on index holdfast.archive_result_failed is 'The latest failures, however many results there are.';
create index event_by_crawl on holdfast.event (crawl_id, id);
comment on index holdfast.event_by_crawl is 'What happened to a crawl and to what belongs to it.';
create index crawl_by_time on holdfast.crawl (created_at);
comment on index holdfast.crawl_by_time is 'The newest crawls.';
create index process_by_start on holdfast.process (started_at);
comment on index holdfast.process_by_start is 'The newest processes.';
create index snapshot_of_crawl on holdfast.snapshot (crawl_id, id);
comment on index holdfast.snapshot_of_crawl is 'A crawl''s snapshots in their order, page by page.';
