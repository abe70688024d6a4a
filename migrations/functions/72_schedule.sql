-- Schedules: when the next run is, and what happens then. The calendar is PostgreSQL's: it knows every zone and every change of
-- its clocks.

create or replace function holdfast.cron_field(p_field text, p_what text, p_low integer, p_high integer, p_names text[]) returns integer[]
  language plpgsql immutable as $$
-- "*", "5", "1-5", "*/15", "10-40/10", "mon,wed,fri": the numbers meant, in order. Names count from p_low.
declare
  v_part text;
  v_match text[];
  v_from integer;
  v_to integer;
  v_step integer;
  v_values integer[] := '{}';
begin
  foreach v_part in array string_to_array(lower(p_field), ',') loop
    v_match := regexp_match(v_part, '^(\*|([a-z]{3}|\d{1,2})(?:-([a-z]{3}|\d{1,2}))?)(?:/(\d{1,3}))?$');
    if v_match is null then
      raise exception 'the % of a schedule cannot be "%"', p_what, p_field using errcode = 'HF004',
        hint = 'Numbers, ranges, lists and steps: 5   1-5   1,15,30   */15   10-40/10' || case when p_names is null then '' else '   ' || p_names[1] || '-' || p_names[2] end;
    end if;
    v_step := coalesce(v_match[4]::integer, 1);
    if v_match[1] = '*' then
      v_from := p_low;
      v_to := p_high;
    else
      v_from := case when v_match[2] ~ '^\d' then v_match[2]::integer else p_low + array_position(p_names, v_match[2]) - 1 end;
      v_to := case when v_match[3] is null then case when v_match[4] is null then v_from else p_high end
                   when v_match[3] ~ '^\d' then v_match[3]::integer else p_low + array_position(p_names, v_match[3]) - 1 end;
    end if;
    -- A range of days may end with Sunday by its name.
    if p_what = 'day of the week' and v_to = 0 and v_from > 0 then v_to := 7; end if;
    if v_from is null or v_to is null or v_from < p_low or v_to > p_high or v_from > v_to or v_step < 1 then
      raise exception 'the % of a schedule cannot be "%"', p_what, p_field using errcode = 'HF004',
        hint = format('It goes from %s to %s, and a range from the smaller to the larger.', p_low, p_high);
    end if;
    v_values := v_values || array(select generate_series(v_from, v_to, v_step));
  end loop;
  if v_values = '{}' then
    raise exception 'the % of a schedule is missing', p_what using errcode = 'HF004';
  end if;
  return array(select distinct v from unnest(v_values) v order by v);
end $$;
comment on function holdfast.cron_field(text, text, integer, integer, text[]) is 'The numbers that one field of a cron expression means.';

create or replace function holdfast.cron_expression(p_every text) returns text language plpgsql immutable as $$
-- The five fields that an alias stands for; NULL for "every N ..."; anything else as it is, single-spaced.
declare
  v_text constant text := regexp_replace(btrim(lower(p_every)), '\s+', ' ', 'g');
begin
  return case
    when v_text in ('minute', 'minutely', '@minutely', 'every minute') then '* * * * *'
    when v_text in ('hour', 'hourly', '@hourly', 'every hour') then '0 * * * *'
    when v_text in ('day', 'daily', '@daily', 'midnight', '@midnight', 'every day') then '0 0 * * *'
    when v_text in ('week', 'weekly', '@weekly', 'every week') then '0 0 * * 0'
    when v_text in ('month', 'monthly', '@monthly', 'every month') then '0 0 1 * *'
    when v_text in ('year', 'yearly', '@yearly', 'annually', '@annually', 'every year') then '0 0 1 1 *'
    when v_text ~ '^every \d' then null
    else v_text end;
end $$;
comment on function holdfast.cron_expression(text) is 'What an alias such as "daily" stands for.';

create or replace function holdfast.schedule_next(p_every text, p_zone text, p_after timestamptz) returns timestamptz language plpgsql stable as $$
-- The first time after p_after. NULL: it never comes (the 31st of February).
--
-- An hour field that begins with "*" means every such hour that passes: nothing is left out or done twice when the clocks change.
-- Fixed hours are meant as the clock on the wall shows them: a time that is skipped in spring runs as much later as the clocks are
-- moved, a time that comes twice in autumn runs once.
declare
  v_expression constant text := holdfast.cron_expression(p_every);
  v_fields text[];
  v_minutes integer[];
  v_hours integer[];
  v_days integer[];
  v_months integer[];
  v_weekdays integer[];
  v_any_day boolean;
  v_any_weekday boolean;
  v_match text[];
  v_local timestamp;
  v_date date;
  v_next timestamptz;
begin
  begin
    v_local := p_after at time zone p_zone;
  exception when invalid_parameter_value then
    raise exception 'there is no time zone "%"', p_zone using errcode = 'HF004', hint = 'For example UTC, Europe/Berlin, America/New_York: select name from pg_timezone_names.';
  end;

  if v_expression is null then
    v_match := regexp_match(btrim(lower(p_every)), '^every\s+(\d{1,6})\s*(m|min|minutes?|h|hours?|d|days?|w|weeks?)$');
    if v_match is null or v_match[1]::integer = 0 then
      raise exception '"%" is no schedule', p_every using errcode = 'HF004', hint = 'For example "every 30 minutes", "every 6 hours", "every 2 days".';
    end if;
    -- Counted from a midnight, so that the times are round ones; days by the calendar, less by the time that passes.
    if v_match[2] ~ '^[dw]' then
      v_local := date_bin(make_interval(days => v_match[1]::integer * case when v_match[2] like 'w%' then 7 else 1 end), v_local, timestamp '2001-01-01');
      loop
        v_local := v_local + make_interval(days => v_match[1]::integer * case when v_match[2] like 'w%' then 7 else 1 end);
        if v_local at time zone p_zone > p_after then return v_local at time zone p_zone; end if;
      end loop;
    end if;
    return date_bin(make_interval(mins => v_match[1]::integer * case when v_match[2] like 'h%' then 60 else 1 end), p_after, timestamp '2001-01-01' at time zone p_zone)
           + make_interval(mins => v_match[1]::integer * case when v_match[2] like 'h%' then 60 else 1 end);
  end if;

  v_fields := string_to_array(v_expression, ' ');
  if cardinality(v_fields) <> 5 then
    raise exception '"%" is no schedule', p_every using errcode = 'HF004',
      hint = 'minutely, hourly, daily, weekly, monthly, yearly, "every 30 minutes", or five fields: minute hour day-of-month month day-of-week.';
  end if;
  v_minutes := holdfast.cron_field(v_fields[1], 'minute', 0, 59, null);
  v_hours := holdfast.cron_field(v_fields[2], 'hour', 0, 23, null);
  v_days := holdfast.cron_field(v_fields[3], 'day of the month', 1, 31, null);
  v_months := holdfast.cron_field(v_fields[4], 'month', 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
  v_weekdays := array(select distinct d % 7 from unnest(holdfast.cron_field(v_fields[5], 'day of the week', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}')) d);
  v_any_day := v_fields[3] like '*%';
  v_any_weekday := v_fields[5] like '*%';

  -- From the day before: where clocks are set back at midnight, a time of yesterday may still come. 28 years hold every
  -- combination of date and weekday, but for the one century year without a leap day, hence a few more.
  for v_date in select d::date from generate_series(v_local::date - 1, v_local::date + 41 * 366, interval '1 day') d loop
    continue when not extract(month from v_date)::integer = any (v_months);
    -- The old rule of cron: if both days are restricted, either may match.
    continue when not case
      when v_any_day or v_any_weekday then extract(day from v_date)::integer = any (v_days) and extract(dow from v_date)::integer = any (v_weekdays)
      else extract(day from v_date)::integer = any (v_days) or extract(dow from v_date)::integer = any (v_weekdays) end;
    if v_fields[2] like '*%' then
      select min(t) into v_next
        from generate_series(v_date::timestamp at time zone p_zone, (v_date + 1)::timestamp at time zone p_zone - interval '1 minute', interval '1 minute') t
        where t > p_after and extract(minute from t at time zone p_zone)::integer = any (v_minutes) and extract(hour from t at time zone p_zone)::integer = any (v_hours);
    else
      select min(t) into v_next from (select (v_date + make_time(h, m, 0)) at time zone p_zone as t from unnest(v_hours) h, unnest(v_minutes) m) times where t > p_after;
    end if;
    if v_next is not null then return v_next; end if;
  end loop;
  return null;
end $$;
comment on function holdfast.schedule_next(text, text, timestamptz) is 'When a schedule is due next: cron expression, alias or "every N minutes", read in a time zone.';

create or replace function holdfast.schedule_times(p_every text, p_zone text, p_after timestamptz, p_count integer) returns setof timestamptz language plpgsql stable as $$
declare
  v_next timestamptz := p_after;
begin
  for i in 1..p_count loop
    v_next := holdfast.schedule_next(p_every, p_zone, v_next);
    exit when v_next is null;
    return next v_next;
  end loop;
end $$;
comment on function holdfast.schedule_times(text, text, timestamptz, integer) is 'The next times of a schedule, to look at before it is made.';

create or replace function holdfast.schedule_add(p_id uuid, p_label text, p_every text, p_zone text, p_urls text[], p_hosts text[], p_crawl jsonb)
  returns timestamptz language plpgsql as $$
-- Returns when it runs first. May be repeated with the same id. p_crawl: what crawl_add takes.
declare
  v_next constant timestamptz := holdfast.schedule_next(p_every, p_zone, clock_timestamp());
begin
  if v_next is null then
    raise exception '"%" never comes', p_every using errcode = 'HF004';
  end if;
  insert into holdfast.schedule (id, label, every, time_zone, urls, hosts, crawl, next_run_at)
    values (p_id, p_label, p_every, p_zone, p_urls, p_hosts, p_crawl, v_next) on conflict (id) do nothing;
  return (select next_run_at from holdfast.schedule where id = p_id);
end $$;
comment on function holdfast.schedule_add(uuid, text, text, text, text[], text[], jsonb) is 'Makes a schedule.';

create or replace function holdfast.schedule_find(p_text text) returns setof uuid language sql stable as $$
  select s.id from holdfast.schedule s where s.label = p_text
  union
  select s.id from holdfast.schedule s
    where replace(lower(p_text), '-', '') ~ '^[0-9a-f]{4,32}$'
      and (replace(s.id::text, '-', '') like replace(lower(p_text), '-', '') || '%' or replace(s.id::text, '-', '') like '%' || replace(lower(p_text), '-', ''))
$$;
comment on function holdfast.schedule_find(text) is 'Schedules by label, or by an id, whole or shortened.';

create or replace function holdfast.schedule_enable(p_id uuid, p_enabled boolean) returns boolean language plpgsql as $$
-- Pausing forgets what is due; a schedule that is resumed goes on with its next time, and catches nothing up. False: it was so already.
begin
  update holdfast.schedule s set enabled = p_enabled, note = case when p_enabled then null else 'paused' end,
      next_run_at = case when p_enabled then holdfast.schedule_next(s.every, s.time_zone, clock_timestamp()) end
    where s.id = p_id and s.enabled <> p_enabled;
  if found then return true; end if;
  if not exists (select from holdfast.schedule where id = p_id) then
    raise exception 'there is no schedule %', p_id using errcode = 'HF004', hint = 'holdfast schedule list';
  end if;
  return false;
end $$;
comment on function holdfast.schedule_enable(uuid, boolean) is 'Pauses or resumes a schedule.';

create or replace function holdfast.schedule_remove(p_id uuid) returns boolean language plpgsql as $$
-- What it has archived stays.
begin
  delete from holdfast.schedule where id = p_id;
  return found;
end $$;
comment on function holdfast.schedule_remove(uuid) is 'Removes a schedule; its crawls stay.';

create or replace function holdfast.schedule_run(p_id uuid, p_crawl uuid) returns uuid language plpgsql as $$
-- Adds the schedule's crawl now, unless its last one is still open: then returns NULL and says so in note.
declare
  v_schedule holdfast.schedule;
  v_now constant timestamptz := clock_timestamp();
begin
  select * into v_schedule from holdfast.schedule where id = p_id for update;
  if not found then
    raise exception 'there is no schedule %', p_id using errcode = 'HF004', hint = 'holdfast schedule list';
  end if;
  if v_schedule.last_crawl_id = p_crawl then return p_crawl; end if; -- a repeat
  if exists (select from holdfast.crawl where id = v_schedule.last_crawl_id and status <> 'sealed') then
    update holdfast.schedule set skipped = skipped + 1,
        note = 'left out at ' || to_char(v_now at time zone time_zone, 'YYYY-MM-DD HH24:MI') || ': its last crawl is still open' where id = p_id;
    return null;
  end if;
  perform holdfast.crawl_add(p_crawl, v_schedule.crawl || jsonb_build_object('created_by', 'schedule ' || coalesce(nullif(v_schedule.label, ''), left(p_id::text, 8))));
  perform holdfast.crawl_add_seeds(p_crawl, v_schedule.urls, v_schedule.hosts, array_fill(''::text, array[cardinality(v_schedule.urls)]), null);
  update holdfast.schedule set last_run_at = v_now, last_crawl_id = p_crawl, runs = runs + 1, note = null where id = p_id;
  return p_crawl;
end $$;
comment on function holdfast.schedule_run(uuid, uuid) is 'Adds a schedule''s crawl, unless the last one is still open.';

create or replace function holdfast.duty_schedules(p_duty holdfast.duty) returns bigint language plpgsql as $$
-- However many times were missed, they are caught up with one run.
declare
  v_schedule holdfast.schedule;
  v_count bigint := 0;
  v_problem text;
begin
  for v_schedule in
    select * from holdfast.schedule s where s.enabled and s.next_run_at <= clock_timestamp() order by s.next_run_at limit p_duty.batch for update skip locked
  loop
    begin
      perform holdfast.schedule_run(v_schedule.id, holdfast.new_uuid());
      update holdfast.schedule s set next_run_at = holdfast.schedule_next(s.every, s.time_zone, clock_timestamp()) where s.id = v_schedule.id;
    exception when others then
      -- One that cannot run must not keep the others back.
      get stacked diagnostics v_problem = message_text;
      update holdfast.schedule s set next_run_at = clock_timestamp() + interval '1 hour', note = 'could not run: ' || v_problem where s.id = v_schedule.id;
    end;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function holdfast.duty_schedules(holdfast.duty) is 'Adds the crawls of schedules that are due.';

create or replace view holdfast.v_schedule as
  select s.id, s.label, s.every, s.time_zone, case when s.enabled then 'on' else 'paused' end as state, s.next_run_at,
         to_char(s.next_run_at at time zone s.time_zone, 'YYYY-MM-DD HH24:MI') as next_run, s.last_run_at, s.runs, s.skipped, s.note,
         c.status as last_status, c.outcome as last_outcome, s.last_crawl_id, s.urls, s.crawl, s.created_at
    from holdfast.schedule s left join holdfast.crawl c on c.id = s.last_crawl_id
    order by s.created_at, s.id;
comment on view holdfast.v_schedule is 'Schedules: when they run next, how the last crawl went, and how often one was left out because the last was still open.';
comment on column holdfast.v_schedule.next_run is 'The same time, as the clock in its time zone shows it.';
