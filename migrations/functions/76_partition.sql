-- The tables that only grow are partitioned by the month of their crawl. A crawl's id is a UUID of version 7,
-- so a range of ids is a range of time; every unique and foreign key of these tables holds crawl_id; and a
-- crawl's rows are all in one partition.
--
-- Foreign keys between these tables are those of partitions of the same month. A key of a whole table would
-- be checked against all months whenever one is removed.
--
-- <table>_2027_01 holds the crawls of a month, <table>_first those of the time before the collection was made
-- (imports bring them), and <table>_other ids that no month has. The task "partitions" makes the months ahead
-- of time.

create or replace function holdfast.growing_tables()
  returns text[] language sql immutable as $$
  -- A table stands behind those that its foreign keys name.
  select '{snapshot, snapshot_sealed, attempt, archive_result, capture, page_text}'::text[]
$$;

create or replace function holdfast.first_id(p_since timestamptz)
  returns uuid language sql stable as $$
  -- The least id of version 7 of that time; NULL for NULL.
  select (lpad(to_hex(floor(extract(epoch from p_since) * 1000)::bigint), 12, '0')
          || '70008000000000000000')::uuid
$$;

create or replace function holdfast.month_of(p_at timestamptz, p_later integer)
  returns timestamptz language sql immutable as $$
  -- The beginning of a month, so many months later, in UTC wherever the session is.
  select (date_trunc('month', p_at at time zone 'UTC') + p_later * interval '1 month') at time zone 'UTC'
$$;

create or replace function holdfast.partition_add(p_suffix text, p_bounds text)
  returns bigint language plpgsql as $$
-- Makes a partition of each table, with the foreign keys that those of no month have among each other.
-- Returns how many it made: none if they are there.
declare
  v_table text;
  v_key record;
begin
  if to_regclass('holdfast.snapshot' || p_suffix) is not null then return 0; end if;
  foreach v_table in array holdfast.growing_tables() loop
    execute format('create table holdfast.%I partition of holdfast.%I for values %s',
                   v_table || p_suffix, v_table, p_bounds);
    for v_key in
      select k.conname as name,
             replace(pg_get_constraintdef(k.oid), '_other(', p_suffix || '(') as definition
        from pg_catalog.pg_constraint k
        where k.contype = 'f' and k.conparentid = 0
          and k.conrelid = ('holdfast.' || v_table || '_other')::regclass
    loop
      execute format('alter table holdfast.%I add constraint %I %s', v_table || p_suffix, v_key.name,
                     v_key.definition);
    end loop;
  end loop;
  return cardinality(holdfast.growing_tables());
end $$;

create or replace function holdfast.partition_month(p_month timestamptz)
  returns bigint language plpgsql as $$
-- Does the same for the month that begins then. A month of which the partitions "other" have crawls already
-- (a clock went ahead, or no runner was there) stays in them.
declare
  v_from constant uuid := holdfast.first_id(p_month);
  v_to constant uuid := holdfast.first_id(holdfast.month_of(p_month, 1));
begin
  if exists (select from holdfast.crawl c where c.id >= v_from and c.id < v_to) then return 0; end if;
  return holdfast.partition_add(to_char(p_month at time zone 'UTC', '_YYYY_MM'),
                                format('from (%L) to (%L)', v_from, v_to));
end $$;

create or replace function holdfast.partitions_ahead()
  returns bigint language plpgsql as $$
-- Makes the partitions of this month and of the next. Each partition makes plans longer: there are no more
-- than a runner that comes once a day needs.
declare
  v_month constant timestamptz := holdfast.month_of(clock_timestamp(), 0);
begin
  return holdfast.partition_add('_first', format('from (minvalue) to (%L)', holdfast.first_id(v_month)))
         + holdfast.partition_month(v_month) + holdfast.partition_month(holdfast.month_of(v_month, 1));
end $$;

create or replace function holdfast.maintenance_partitions(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- A new partition needs its table for itself for a moment. A transaction that waits for that blocks all
-- others, so it does not wait for long; the task runs again.
begin
  set local lock_timeout = '2s';
  return holdfast.partitions_ahead();
end $$;

create or replace function holdfast.partition_hand_over(p_partition text, p_to text)
  returns void language plpgsql as $$
-- Makes a partition that was detached a child of removed_page or removed_capture.
declare
  v_name constant text := p_to || '_' || pg_current_xact_id()::text;
  v_key text;
begin
  for v_key in
    select k.conname from pg_catalog.pg_constraint k
      where k.conrelid = ('holdfast.' || p_partition)::regclass and k.contype = 'f'
  loop
    execute format('alter table holdfast.%I drop constraint %I', p_partition, v_key);
  end loop;
  if p_to = 'removed_page' then
    execute format('alter table holdfast.%I add column removed_at timestamptz not null default now()',
                   p_partition);
  end if;
  execute format('alter table holdfast.%I rename to %I', p_partition, v_name);
  execute format('alter table holdfast.%I inherit holdfast.%I', v_name, p_to);
end $$;

create or replace function holdfast.partition_remove(p_month date, p_by text)
  returns bigint language plpgsql set lock_timeout = '2s' as $$
-- Removes all crawls of a month, which must be sealed, with its partitions. Returns how many crawls. Workers
-- wait for the locks that this takes, so it reads no pages: the partitions that name directories and records
-- become children of removed_page and removed_capture, and purge_fill() reads them batch by batch.
declare
  v_from constant uuid := holdfast.first_id(holdfast.month_of(p_month::timestamp at time zone 'UTC', 0));
  v_to constant uuid := holdfast.first_id(holdfast.month_of(p_month::timestamp at time zone 'UTC', 1));
  c_suffix constant text := to_char(p_month, '_YYYY_MM');
  v_crawl holdfast.crawl;
  v_table text;
  v_count bigint;
  v_before text;
begin
  if to_regclass('holdfast.snapshot' || c_suffix) is null then
    raise exception 'no partition holds %', to_char(p_month, 'YYYY-MM')
      using errcode = 'HF004', hint = 'select * from holdfast.v_partition';
  end if;
  begin
    -- Also against originals_hold(), which locks rows.
    lock table holdfast.crawl in exclusive mode;
    foreach v_table in array holdfast.growing_tables() loop
      execute format('lock table holdfast.%I in access exclusive mode', v_table);
    end loop;
  exception when lock_not_available then
    raise exception 'other sessions use the pages now, and workers would have to wait'
      using errcode = 'HF004',
        hint = 'Try again, or see the long transactions: select * from pg_stat_activity order by xact_start';
  end;
  select * into v_crawl
    from holdfast.crawl c
    where c.id >= v_from and c.id < v_to and (c.status <> 'sealed' or c.keep_until > clock_timestamp())
    order by c.id limit 1;
  if found then
    raise exception 'crawl % of % is %', v_crawl.id, to_char(p_month, 'YYYY-MM'),
      case when v_crawl.status = 'sealed' then 'kept until ' || v_crawl.keep_until else v_crawl.status end
      using errcode = 'HF004', hint = 'Wait until it has ended, or cancel it; holdfast keep changes how long.';
  end if;
  perform holdfast.crawl_page_changes(c.id) from holdfast.crawl c where c.id >= v_from and c.id < v_to;
  delete from holdfast.site; -- The task counts again: a month may have millions of pages.
  update holdfast.counted set upto = '-infinity' where what = 'sites';
  delete from holdfast.replay_quality q where q.crawl_id >= v_from and q.crawl_id < v_to;
  -- Tables that refer to others go first. A table to which others refer can only be dropped on its own.
  for v_table in
    select t from unnest(holdfast.growing_tables()) with ordinality u(t, n) order by n desc
  loop
    execute format('alter table holdfast.%I detach partition holdfast.%I', v_table, v_table || c_suffix);
    case v_table
      when 'snapshot_sealed' then perform holdfast.partition_hand_over(v_table || c_suffix, 'removed_page');
      when 'capture' then perform holdfast.partition_hand_over(v_table || c_suffix, 'removed_capture');
      else execute format('drop table holdfast.%I', v_table || c_suffix);
    end case;
  end loop;
  v_before := holdfast.set_change_sealed('on');
  delete from holdfast.crawl c where c.id >= v_from and c.id < v_to;
  get diagnostics v_count = row_count;
  perform holdfast.set_change_sealed(v_before);
  perform holdfast.control_done('remove', 'all', 'crawls of ' || to_char(p_month, 'YYYY-MM'), null, holdfast.who(p_by),
    v_count || ' crawls', 0);
  return v_count;
end $$;
comment on function holdfast.partition_remove is
  'Removes all crawls of a month at once, if none is open or kept; purge_fill() lists their directories.';

create or replace view holdfast.v_partition as
  select p.relname::text as table_name, c.relname::text as name,
         pg_get_expr(c.relpartbound, c.oid) as holds,
         greatest(c.reltuples, 0)::bigint as rows_estimated, pg_total_relation_size(c.oid) as bytes
    from pg_catalog.pg_inherits i
    join pg_catalog.pg_class c on c.oid = i.inhrelid
    join pg_catalog.pg_class p on p.oid = i.inhparent
    where p.relnamespace = 'holdfast'::regnamespace
      and (p.relkind = 'p' or p.relname in ('removed_page', 'removed_capture'))
    order by p.relname, c.relname;
comment on view holdfast.v_partition is
  'Partitions of the tables that only grow. Also what is left of removed months until their files are listed '
  'in purge.';
comment on column holdfast.v_partition.table_name is 'The table.';
comment on column holdfast.v_partition.name is 'The partition: first, a month, other, or what is left.';
comment on column holdfast.v_partition.holds is 'Crawls, by id, whose rows the partition holds.';
comment on column holdfast.v_partition.rows_estimated is 'About how many rows; counted by the last analyze.';
comment on column holdfast.v_partition.bytes is 'Size in bytes, with indexes.';

-- A new collection has its first partitions at once.
select holdfast.partitions_ahead();
