-- Each different life of a page that was claimed, as test_row has it, with the number of pages that had it.
-- Fences are counted, because they leap when a standby takes over. A row that ends is sealed or quarantined,
-- as the sealed snapshot says. The model knows no scope: a page that is parked outside of it waits as in the
-- queue.
with rows as (
    select r.snapshot, r.id,
           case when r.status = 'paused' then 'queued' when r.status <> '' then r.status
                when e.outcome = 'quarantined' then e.outcome else 'sealed' end as status,
           coalesce(r.fence, lag(r.fence) over w) as fence,
           coalesce(r.lapses, lag(r.lapses) over w) as lapses
      from holdfast.test_row r
      left join holdfast.snapshot_sealed e on e.snapshot_id = r.snapshot
      window w as (partition by r.snapshot order by r.id)),
  states as (
    select snapshot, id, status, lapses, dense_rank() over (partition by snapshot order by fence) - 1 as fence
      from rows),
  changes as (
    select s.*, (status, fence, lapses) is distinct from
                lag((status, fence, lapses)) over (partition by snapshot order by id) as changed
      from states s)
select life, count(*)
  from (select jsonb_agg(jsonb_build_array(status, fence, lapses) order by id) as life
          from changes where changed
          group by snapshot
          having bool_or(status = 'started')) lives
  group by life
