-- Schedules: when the next run is due, and what it adds. Calendar and time zones are PostgreSQL's.

create or replace function holdfast.cron_field(p_field text,
    p_what text, p_low integer, p_high integer, p_names text[])
  returns integer[] language plpgsql immutable as $$
-- Expands one field of a cron expression to its numbers, in order: "*", "5", "1-5", "*/15", "10-40/10",
-- "mon,wed,fri". Names count from p_low.
declare
  v_part text;
  v_match text[];
  v_ends integer[];
  v_from integer;
  v_to integer;
  v_step integer;
  v_values integer[] := '{}';
begin
  foreach v_part in array string_to_array(lower(p_field), ',') loop
    v_match := regexp_match(v_part, '^(\*|([a-z]{3}|\d{1,2})(?:-([a-z]{3}|\d{1,2}))?)(?:/(\d{1,3}))?$');
    v_ends := array(select case when e ~ '^\d' then e::integer else p_low + array_position(p_names, e) - 1 end
                      from unnest(v_match[2:3]) with ordinality u(e, n)
                      order by n);
    v_from := case v_match[1] when '*' then p_low else v_ends[1] end;
    v_to := case when v_match[1] = '*' then p_high
                 when v_match[3] is not null then v_ends[2]
                 when v_match[4] is not null then p_high
                 else v_from end;
    v_step := coalesce(v_match[4]::integer, 1);
    -- A range of weekdays may end with Sunday by name.
    if p_what = 'day of the week' and v_to = 0 and v_from > 0 then v_to := 7; end if;
    if v_from is null or v_to is null or v_from < p_low or v_to > p_high or v_from > v_to or v_step < 1 then
      raise exception 'the % of a schedule cannot be "%"', p_what, p_field using errcode = 'HF004',
        hint = format('Numbers from %s to %s, ranges, lists, steps: 5   1-5   1,15,30   */15   10-40/10',
                      p_low, p_high) || coalesce('   ' || p_names[1] || '-' || p_names[2], '');
    end if;
    v_values := v_values || array(select generate_series(v_from, v_to, v_step));
  end loop;
  return array(select distinct v from unnest(v_values) v order by v);
end $$;

create or replace function holdfast.cron_next(p_expression text, p_zone text, p_after timestamptz)
  returns timestamptz language plpgsql stable as $$
-- An hour field that begins with "*" means every such hour that passes: no run is missed or repeated when the
-- clocks change. Fixed hours are local time: a time that is skipped in spring runs later by the same shift, a
-- time that occurs twice in autumn runs once.
declare
  v_fields constant text[] := string_to_array(p_expression, ' ');
  v_minutes constant integer[] := holdfast.cron_field(v_fields[1], 'minute', 0, 59, null);
  v_hours constant integer[] := holdfast.cron_field(v_fields[2], 'hour', 0, 23, null);
  v_days constant integer[] := holdfast.cron_field(v_fields[3], 'day of the month', 1, 31, null);
  v_months constant integer[] := holdfast.cron_field(v_fields[4], 'month', 1, 12,
    '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
  v_weekdays constant integer[] := array(
    select d % 7
      from unnest(holdfast.cron_field(v_fields[5], 'day of the week', 0, 7,
        '{sun,mon,tue,wed,thu,fri,sat}')) d);
  v_any_day constant boolean := v_fields[3] like '*%' or v_fields[5] like '*%';
  v_date date;
  v_is_day boolean;
  v_is_weekday boolean;
  v_next timestamptz;
begin
  -- From the day before: if clocks are set back at midnight, a time of yesterday may still come. Within 41
  -- years, every combination of date and weekday occurs.
  for v_date in
    select d::date
      from generate_series((p_after at time zone p_zone)::date - 1,
                           (p_after at time zone p_zone)::date + 41 * 366, interval '1 day') d
      where extract(month from d)::integer = any (v_months)
  loop
    v_is_day := extract(day from v_date)::integer = any (v_days);
    v_is_weekday := extract(dow from v_date)::integer = any (v_weekdays);
    -- As in cron: if both days are restricted, either may match.
    continue when not case when v_any_day then v_is_day and v_is_weekday
                           else v_is_day or v_is_weekday end;
    if v_fields[2] like '*%' then
      select min(t) into v_next
        from generate_series(v_date::timestamp at time zone p_zone,
               (v_date + 1)::timestamp at time zone p_zone - interval '1 minute', interval '1 minute') t
        where t > p_after and extract(minute from t at time zone p_zone)::integer = any (v_minutes)
          and extract(hour from t at time zone p_zone)::integer = any (v_hours);
    else
      select min(t) into v_next
        from unnest(v_hours) h, unnest(v_minutes) m,
             lateral (select (v_date + make_time(h, m, 0)) at time zone p_zone as t) times
        where t > p_after;
    end if;
    if v_next is not null then return v_next; end if;
  end loop;
  return null;
end $$;

create or replace function holdfast.schedule_bounds(p_every text)
  returns interval[] language plpgsql immutable as $$
-- "15m..1d": the least and the greatest interval of a watch that adapts.
declare
  m constant text[] := regexp_match(btrim(lower(p_every)),
    '^(?:every )?0*([1-9]\d{0,5}) ?(m|h|d|w)(?:in|inutes?|ours?|ays?|eeks?)? ?\.\. ?0*([1-9]\d{0,5}) ?(m|h|d|w)');
  v_bounds constant interval[] := array[(m[1] || m[2])::interval, (m[3] || m[4])::interval];
begin
  if m is null or v_bounds[1] > v_bounds[2] then
    raise exception 'invalid interval "%"', p_every using errcode = 'HF004',
      hint = 'The least interval, then the greatest: 15m..1d';
  end if;
  return v_bounds;
end $$;

create or replace function holdfast.schedule_next(p_every text, p_zone text, p_after timestamptz)
  returns timestamptz language plpgsql stable as $$
-- The first time after p_after; NULL: there is none (February 31). "every N ..." counts from a midnight, so
-- that the times are round: days and weeks by the calendar, hours and minutes by elapsed time.
declare
  v_every constant text := regexp_replace(btrim(lower(p_every)), '\s+', ' ', 'g');
  v_match constant text[] :=
    regexp_match(v_every, '^(?:every )?0*([1-9]\d{0,5}) ?(m|min|minutes?|h|hours?|d|days?|w|weeks?)$');
  v_unit constant text := left(v_match[2], 1);
  v_step constant interval := v_match[1]::integer
    * case v_unit when 'm' then interval '1 minute'
                  when 'h' then '1 hour'
                  when 'd' then '1 day'
                  else '7 days' end;
  v_expression constant text := case
    when v_every in ('minute', 'minutely', '@minutely', 'every minute') then '* * * * *'
    when v_every in ('hour', 'hourly', '@hourly', 'every hour') then '0 * * * *'
    when v_every in ('day', 'daily', '@daily', 'midnight', '@midnight', 'every day') then '0 0 * * *'
    when v_every in ('week', 'weekly', '@weekly', 'every week') then '0 0 * * 0'
    when v_every in ('month', 'monthly', '@monthly', 'every month') then '0 0 1 * *'
    when v_every in ('year', 'yearly', '@yearly', 'annually', '@annually', 'every year') then '0 0 1 1 *'
    else v_every end;
  v_local timestamp;
begin
  if p_every like '%..%' then return p_after + (holdfast.schedule_bounds(p_every))[1]; end if;
  begin
    v_local := p_after at time zone p_zone;
  exception when invalid_parameter_value then
    raise exception 'unknown time zone "%"', p_zone using errcode = 'HF004',
      hint = 'For example UTC, Europe/Berlin, America/New_York: select name from pg_timezone_names.';
  end;
  if v_unit in ('m', 'h') then
    return date_bin(v_step, p_after, timestamp '2001-01-01' at time zone p_zone) + v_step;
  elsif v_unit in ('d', 'w') then
    v_local := date_bin(v_step, v_local, timestamp '2001-01-01');
    return (select min(t)
              from generate_series(v_local, v_local + 2 * v_step, v_step) l, timezone(p_zone, l) t
              where t > p_after);
  elsif v_expression ~ '^\S+( \S+){4}$' then
    return holdfast.cron_next(v_expression, p_zone, p_after);
  end if;
  raise exception 'invalid schedule "%"', p_every using errcode = 'HF004',
    hint = 'For example daily, weekly, "every 30 minutes", "every 2 days", or five fields: '
           'minute hour day-of-month month day-of-week; of a watch also 15m..1d.';
end $$;
comment on function holdfast.schedule_next is
  'Returns the next due time of a schedule: cron expression, alias or "every N minutes", read in a time zone.';

create or replace function holdfast.schedule_times(p_every text,
    p_zone text, p_after timestamptz, p_count integer)
  returns setof timestamptz language sql stable as $$
  with recursive times(at) as (
    select holdfast.schedule_next(p_every, p_zone, p_after)
    union all
    select holdfast.schedule_next(p_every, p_zone, t.at) from times t where t.at is not null
  )
  select t.at from times t where t.at is not null limit p_count
$$;
comment on function holdfast.schedule_times is 'The next times of a schedule.';

create or replace function holdfast.schedule_add(p_id uuid, p_label text,
    p_every text, p_zone text, p_urls text[], p_crawl jsonb, p_watch jsonb default null)
  returns timestamptz language plpgsql as $$
-- p_crawl: argument of crawl_add. p_watch: argument of watch_set; a watch runs at once. Returns the time of
-- the first run. May be repeated with the same id.
declare
  v_next timestamptz := holdfast.schedule_next(p_every, p_zone, clock_timestamp());
begin
  if v_next is null then raise exception 'schedule "%" is never due', p_every using errcode = 'HF004'; end if;
  perform holdfast.options_check(p_crawl -> 'options');
  perform holdfast.persona_check(p_crawl ->> 'persona');
  insert into holdfast.schedule (id, label, every, time_zone, urls, crawl, next_run_at)
    values (p_id, p_label, p_every, p_zone, p_urls, holdfast.crawl_by_caller(p_crawl), v_next)
    on conflict (id) do nothing;
  if found and p_watch is not null then
    perform holdfast.watch_set(p_id, p_watch, p_crawl ->> 'created_by');
    update holdfast.schedule set next_run_at = clock_timestamp() where id = p_id;
  elsif p_every like '%..%' and p_watch is null then
    raise exception 'an interval between two bounds is for watches' using errcode = 'HF004',
      hint = 'holdfast watch add';
  end if;
  select next_run_at into v_next from holdfast.schedule where id = p_id;
  return v_next;
end $$;
comment on function holdfast.schedule_add is 'Adds a schedule.';

create or replace function holdfast.schedule_find(p_text text)
  returns setof uuid language sql stable as $$
  select s.id
    from holdfast.schedule s, (select replace(lower(p_text), '-', '') as hex) x
    where s.label = p_text
       or x.hex ~ '^[0-9a-f]{4,32}$'
          and (replace(s.id::text, '-', '') like x.hex || '%'
               or replace(s.id::text, '-', '') like '%' || x.hex)
$$;
comment on function holdfast.schedule_find is 'Schedules by label, or by an id, whole or shortened.';

create or replace function holdfast.schedule_lock(p_id uuid)
  returns holdfast.schedule language plpgsql as $$
declare
  v_schedule holdfast.schedule;
begin
  select * into v_schedule from holdfast.schedule where id = p_id for update;
  if not found then
    raise exception 'there is no schedule %', p_id using errcode = 'HF004', hint = 'holdfast schedule list';
  end if;
  return v_schedule;
end $$;

create or replace function holdfast.schedule_enable(p_id uuid, p_enabled boolean)
  returns boolean language plpgsql as $$
-- A paused schedule skips due times; a resumed one continues with its next time. Returns false if nothing
-- changed.
begin
  perform holdfast.schedule_lock(p_id);
  update holdfast.schedule s
    set enabled = p_enabled, note = case when not p_enabled then 'paused' end,
        next_run_at = case when p_enabled then
                        holdfast.schedule_next(s.every, s.time_zone, clock_timestamp()) end
    where s.id = p_id and s.enabled <> p_enabled;
  return found;
end $$;
comment on function holdfast.schedule_enable is 'Pauses or resumes a schedule.';

create or replace function holdfast.schedule_remove(p_id uuid)
  returns boolean language sql as $$
  with gone as (delete from holdfast.schedule where id = p_id returning 1) select exists (select from gone)
$$;
comment on function holdfast.schedule_remove is 'Removes a schedule; its crawls stay.';

create or replace function holdfast.schedule_run(p_id uuid, p_crawl uuid)
  returns uuid language plpgsql as $$
-- Returns NULL if the last crawl is still open, or if a crawl with only_new would leave out all URLs. The
-- note says which. May be repeated with the same p_crawl.
declare
  v_schedule constant holdfast.schedule := holdfast.schedule_lock(p_id);
  v_now constant timestamptz := clock_timestamp();
  v_at constant text := to_char(v_now at time zone v_schedule.time_zone, 'YYYY-MM-DD HH24:MI');
begin
  if v_schedule.last_crawl_id = p_crawl then return p_crawl; end if;
  if exists (select from holdfast.crawl where id = v_schedule.last_crawl_id and status <> 'sealed') then
    update holdfast.schedule
      set skipped = skipped + 1,
          note = 'skipped at ' || v_at || ': its last crawl is still open'
      where id = p_id;
    return null;
  end if;
  if (v_schedule.crawl ->> 'only_new')::boolean and v_schedule.watch is null
     and not exists (select unnest(v_schedule.urls)
                     except
                     select a.url from holdfast.seeds_archived(v_schedule.crawl, v_schedule.urls) a) then
    update holdfast.schedule
      set last_run_at = v_now, runs = runs + 1, note = 'nothing new at ' || v_at
      where id = p_id;
    return null;
  end if;
  perform holdfast.crawl_insert(p_crawl, v_schedule.crawl || jsonb_build_object('created_by',
      'schedule ' || coalesce(nullif(v_schedule.label, ''), left(p_id::text, 8)))
    -- A feed of which entries are left is read again, with their dates and titles.
    || case when (v_schedule.state ->> 'more')::boolean then '{"full": true}'::jsonb else '{}' end);
  perform holdfast.crawl_add_seeds(p_crawl, v_schedule.urls, '{}', null);
  update holdfast.schedule
    set last_run_at = v_now, last_crawl_id = p_crawl, runs = runs + 1, note = null
    where id = p_id;
  return p_crawl;
end $$;
comment on function holdfast.schedule_run is
  'Adds the crawl of a schedule, unless the last one is still open or all its URLs are archived.';

create or replace function holdfast.maintenance_schedules(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- Missed times are caught up with one run.
declare
  v_schedule holdfast.schedule;
  v_count bigint := 0;
  v_problem text;
begin
  for v_schedule in
    select *
      from holdfast.schedule s
      where s.enabled and s.next_run_at <= clock_timestamp()
      order by s.next_run_at limit p_task.batch for update skip locked
  loop
    begin
      perform holdfast.schedule_run(v_schedule.id, holdfast.new_uuid());
      update holdfast.schedule s
        set next_run_at = coalesce(clock_timestamp() + s.pace,
                                   holdfast.schedule_next(s.every, s.time_zone, clock_timestamp()))
        where s.id = v_schedule.id;
    exception when others then
      -- A schedule that cannot run must not block the others.
      get stacked diagnostics v_problem = message_text;
      update holdfast.schedule s
        set next_run_at = clock_timestamp() + interval '1 hour', note = 'could not run: ' || v_problem
        where s.id = v_schedule.id;
    end;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;

create or replace view holdfast.v_schedule as
  select s.id, s.label, s.every, s.time_zone, case when s.enabled then 'on' else 'paused' end as state,
         s.next_run_at, to_char(s.next_run_at at time zone s.time_zone, 'YYYY-MM-DD HH24:MI') as next_run,
         s.last_run_at, s.runs, s.skipped, s.note, c.status as last_status, c.outcome as last_outcome,
         s.last_crawl_id, s.urls, s.crawl, s.created_at,
         s.urls[1] || coalesce(' +' || nullif(cardinality(s.urls) - 1, 0), '') as first_url
    from holdfast.schedule s
    left join holdfast.crawl c on c.id = s.last_crawl_id
    order by s.created_at, s.id;
comment on view holdfast.v_schedule is 'Schedules: when they run next, and how the last crawl went.';
comment on column holdfast.v_schedule.id is 'The schedule.';
comment on column holdfast.v_schedule.state is 'on or paused.';
comment on column holdfast.v_schedule.last_status is 'Status of the crawl that the schedule added last.';
comment on column holdfast.v_schedule.last_outcome is 'Outcome of that crawl.';
comment on column holdfast.v_schedule.next_run is 'next_run_at in the schedule''s time zone.';
comment on column holdfast.v_schedule.first_url is 'First URL, and the number of others.';
