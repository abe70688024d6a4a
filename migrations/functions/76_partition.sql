-- Large collections: the tables that only grow are split by the month of their crawl. `holdfast migrate
-- --partition` does it once. A crawl's id is a UUID of version 7, so a range of ids is a range of time; every
-- unique and foreign key of these tables holds crawl_id; and a crawl's rows are all in one partition.
--
-- Foreign keys between these tables are those of partitions of the same month. A key of a whole table would
-- be checked against all months whenever one is removed.
--
-- <table>_first holds what was there before, <table>_2027_01 the crawls of a month, and <table>_other ids
-- that no month has. The duty "partitions" makes the months ahead of time.

create or replace function holdfast.growing_tables()
  returns text[] language sql immutable as $$
  -- A table stands behind those that its foreign keys name.
  select '{snapshot, snapshot_sealed, attempt, archive_result, capture, page_text}'::text[]
$$;

create or replace function holdfast.is_partitioned()
  returns boolean language sql stable as $$
  select exists (select from pg_catalog.pg_partitioned_table
                   where partrelid = to_regclass('holdfast.snapshot'))
$$;

create or replace function holdfast.month_of(p_at timestamptz, p_later integer)
  returns timestamptz language sql immutable as $$
  -- The beginning of a month, so many months later, in UTC wherever the session is.
  select (date_trunc('month', p_at at time zone 'UTC') + p_later * interval '1 month') at time zone 'UTC'
$$;

create or replace function holdfast.partition_table(p_table text, p_bound uuid)
  returns void language plpgsql as $$
-- Puts a partitioned table of the same name, with the same constraints and indexes, in front of a table. The
-- statements that make an index are those that PostgreSQL prints before the table gets another name; it then
-- finds the old index and does not build one.
declare
  c_first constant text := p_table || '_first';
  v_old constant regclass := ('holdfast.' || p_table)::regclass;
  v_about constant text := obj_description(v_old, 'pg_class');
  v_one record;
  v_renames text[] := '{}';
  v_makes text[] := '{}';
  v_statement text;
begin
  for v_one in
    select i.relname as name, obj_description(i.oid, 'pg_class') as about,
           case when c.oid is null then pg_get_indexdef(i.oid)
                else format('alter table holdfast.%I add constraint %I %s', p_table, c.conname,
                            pg_get_constraintdef(c.oid)) end as statement
      from pg_catalog.pg_index x
      join pg_catalog.pg_class i on i.oid = x.indexrelid
      left join pg_catalog.pg_constraint c
        on c.conindid = i.oid and c.conrelid = v_old and c.contype in ('p', 'u')
      where x.indrelid = v_old
  loop
    v_renames := v_renames
      || format('alter index holdfast.%I rename to %I', v_one.name, v_one.name || '_first');
    v_makes := v_makes || v_one.statement
      || format('comment on index holdfast.%I is %L', v_one.name, v_one.about);
  end loop;
  -- The functions' files, which follow, put them on the partitioned table.
  for v_one in
    select tgname as name from pg_catalog.pg_trigger where tgrelid = v_old and not tgisinternal
  loop
    execute format('drop trigger %I on holdfast.%I', v_one.name, p_table);
  end loop;
  execute format('alter table holdfast.%I rename to %I', p_table, c_first);
  execute format(
    'create table holdfast.%I (like holdfast.%I including defaults including generated including constraints'
    ' including storage including compression including comments) partition by range (crawl_id)',
    p_table, c_first);
  execute format('comment on table holdfast.%I is %L', p_table, v_about);
  execute format('alter table holdfast.%I attach partition holdfast.%I for values from (minvalue) to (%L)',
                 p_table, c_first, p_bound);
  foreach v_statement in array v_renames || v_makes loop
    execute v_statement;
  end loop;
  execute format('create table holdfast.%I partition of holdfast.%I default', p_table || '_other', p_table);
end $$;

create or replace function holdfast.partition_keys(p_suffix text)
  returns void language plpgsql as $$
-- Gives the partitions of one month the foreign keys that the first ones have among each other.
declare
  v_key record;
begin
  for v_key in
    select replace(k.conrelid::regclass::text, '_first', p_suffix) as on_table, k.conname as name,
           replace(pg_get_constraintdef(k.oid), '_first(', p_suffix || '(') as definition
      from pg_catalog.pg_constraint k
      where k.contype = 'f' and k.conparentid = 0
        and k.conrelid = any (select ('holdfast.' || t || '_first')::regclass
                                from unnest(holdfast.growing_tables()) t)
        and k.confrelid = any (select ('holdfast.' || t || '_first')::regclass
                                 from unnest(holdfast.growing_tables()) t)
  loop
    execute format('alter table %s add constraint %I %s', v_key.on_table, v_key.name, v_key.definition);
  end loop;
end $$;

create or replace function holdfast.partition_tables()
  returns boolean language plpgsql as $$
-- Returns false if that is done already. No row moves, but PostgreSQL reads the tables to check them, and
-- they are locked meanwhile. Views still read the first partitions afterwards: the migrator, which calls
-- this, applies the files of functions next.
declare
  v_bound constant uuid := holdfast.first_id(holdfast.month_of(clock_timestamp(), 1));
  v_crawl uuid;
  v_key record;
  v_keys text[] := '{}';
  v_one text;
begin
  if holdfast.is_partitioned() then return false; end if;
  lock table holdfast.crawl in share mode;
  select c.id into v_crawl from holdfast.crawl c where c.id >= v_bound order by c.id limit 1;
  if found then
    raise exception 'crawl % has an id of a time to come; the tables cannot be split by time', v_crawl
      using errcode = 'HF004', hint = 'A clock that went ahead made it. Remove the crawl: holdfast remove';
  end if;
  for v_key in
    select k.conrelid::regclass as on_table, k.conname as name, pg_get_constraintdef(k.oid) as definition
      from pg_catalog.pg_constraint k
      where k.contype = 'f'
        and (k.conrelid = any (select ('holdfast.' || t)::regclass from unnest(holdfast.growing_tables()) t))
            <> (k.confrelid = any (select ('holdfast.' || t)::regclass from unnest(holdfast.growing_tables()) t))
  loop
    v_keys := v_keys
      || format('alter table %s add constraint %I %s', v_key.on_table, v_key.name, v_key.definition);
    execute format('alter table %s drop constraint %I', v_key.on_table, v_key.name);
  end loop;
  foreach v_one in array holdfast.growing_tables() loop
    perform holdfast.partition_table(v_one, v_bound);
  end loop;
  perform holdfast.partition_keys('_other');
  foreach v_one in array v_keys loop
    execute v_one;
  end loop;
  insert into holdfast.duty (name, every, function, batch, about)
    values ('partitions', '1 day', 'duty_partitions', 3, 'makes the partitions of the next months')
    on conflict do nothing;
  perform holdfast.partitions_ahead();
  return true;
end $$;

create or replace function holdfast.partitions_ahead()
  returns bigint language plpgsql as $$
-- Makes the partitions of the next three months; returns how many tables it made. A month of which the
-- partitions "other" have crawls already (a clock went ahead, or no runner was there) stays in them.
declare
  v_month timestamptz;
  v_from uuid;
  v_to uuid;
  v_table text;
  v_suffix text;
  v_count bigint := 0;
begin
  for i in 1..3 loop
    v_month := holdfast.month_of(clock_timestamp(), i);
    v_from := holdfast.first_id(v_month);
    v_to := holdfast.first_id(holdfast.month_of(v_month, 1));
    continue when exists (select from holdfast.crawl c where c.id >= v_from and c.id < v_to);
    v_suffix := to_char(v_month at time zone 'UTC', '_YYYY_MM');
    continue when to_regclass('holdfast.snapshot' || v_suffix) is not null;
    foreach v_table in array holdfast.growing_tables() loop
      execute format('create table holdfast.%I partition of holdfast.%I for values from (%L) to (%L)',
                     v_table || v_suffix, v_table, v_from, v_to);
      v_count := v_count + 1;
    end loop;
    perform holdfast.partition_keys(v_suffix);
  end loop;
  return v_count;
end $$;

create or replace function holdfast.duty_partitions(p_duty holdfast.duty)
  returns bigint language plpgsql as $$
-- A new partition needs its table for itself for a moment. Who waits for that holds up all others, so it does
-- not wait for long; the duty comes again.
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
-- are handed to removed_page and removed_capture, and purge_fill() reads them batch by batch.
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
    raise exception 'others use the pages at the moment, and workers would have to wait for them'
      using errcode = 'HF004',
        hint = 'Try again, or see what takes so long: select * from pg_stat_activity order by xact_start';
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
  delete from holdfast.replay_quality q where q.crawl_id >= v_from and q.crawl_id < v_to;
  -- Those that refer to others go first. A table to which others refer can only be dropped on its own.
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
  perform holdfast.control_done('remove', 'all', 'crawls of ' || to_char(p_month, 'YYYY-MM'), null, p_by,
    v_count || ' crawls', 0);
  return v_count;
end $$;
comment on function holdfast.partition_remove(date, text) is
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
  'Partitions of the tables that only grow; no row: they are not partitioned. Also what is left of removed '
  'months until their files are listed in purge.';
comment on column holdfast.v_partition.table_name is 'The table.';
comment on column holdfast.v_partition.name is 'The partition: first, a month, other, or what is left.';
comment on column holdfast.v_partition.holds is 'The ids of crawls whose rows it holds.';
comment on column holdfast.v_partition.rows_estimated is 'About how many rows; counted by the last analyze.';
comment on column holdfast.v_partition.bytes is 'Bytes that it takes with its indexes.';
