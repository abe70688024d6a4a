-- Adding and expanding: what the crawl's row lock guards already is not looked up again for each URL.

-- Seeds and snapshots are written by whoever holds their crawl's row, the queue's rows in one statement with their snapshots. A foreign key
-- of each of them looked up and locked what is locked, three times for every URL. They still go with it.
alter table holdfast.crawl_seed drop constraint crawl_seed_crawl_id_fkey;
alter table holdfast.snapshot drop constraint snapshot_crawl_id_fkey;
alter table holdfast.snapshot_queue drop constraint snapshot_queue_snapshot;
comment on column holdfast.crawl_seed.crawl_id is 'Its crawl. No foreign key: whoever writes it holds the crawl''s row.';
comment on column holdfast.snapshot.crawl_id is 'Its crawl. No foreign key: whoever writes it holds the crawl''s row.';

create function holdfast.crawls_go() returns trigger language plpgsql set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
begin
  delete from holdfast.crawl_seed s where s.crawl_id = any (array(select g.id from gone g));
  delete from holdfast.snapshot s where s.crawl_id = any (array(select g.id from gone g));
  return null;
end $$;
comment on function holdfast.crawls_go is 'Takes the seeds and snapshots of removed crawls away.';
create trigger crawls_go after delete on holdfast.crawl referencing old table as gone for each statement execute function holdfast.crawls_go();

create or replace function holdfast.snapshots_go() returns trigger language plpgsql
  set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
begin
  delete from holdfast.snapshot_queue q using gone g
    where q.snapshot_id = any (array(select i.id from gone i)) and q.snapshot_id = g.id and q.crawl_id = g.crawl_id;
  delete from holdfast.archive_result r using gone g
    where r.snapshot_id = any (array(select i.id from gone i)) and r.snapshot_id = g.id and r.crawl_id = g.crawl_id;
  delete from holdfast.attempt a using gone g
    where a.snapshot_id = any (array(select i.id from gone i)) and a.snapshot_id = g.id and a.crawl_id = g.crawl_id;
  delete from holdfast.snapshot_sealed e using gone g
    where e.snapshot_id = any (array(select i.id from gone i)) and e.snapshot_id = g.id and e.crawl_id = g.crawl_id;
  return null;
end $$;
comment on function holdfast.snapshots_go is 'Takes the queue rows, results, attempts and sealed rows of removed snapshots away.';
