-- Webhooks: a transactional outbox. Triggers write deliveries in the transaction of the event. A deliverer
-- claims due deliveries for p_lease and reports by (id, fence). If it does not report, the next claim takes
-- them: delivery is at least once.

create or replace function holdfast.webhook_tell(p_event text,
    p_object uuid, p_data jsonb, p_only text[] default null)
  returns bigint language plpgsql as $$
-- Writes a delivery for each webhook of an event, or for the webhooks p_only. The payload is made once, so
-- that every attempt sends the same bytes. Returns the id of the last delivery.
declare
  v_payload constant text := jsonb_build_object(
    'type', p_event, 'data', jsonb_strip_nulls(p_data),
    'timestamp', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
  v_id bigint;
begin
  with told as (
    insert into holdfast.delivery (webhook, event, object_id, payload)
      select w.name, p_event, p_object, v_payload
        from holdfast.webhook w
        where case when p_only is null then w.enabled and p_event = any (w.events)
                   else w.name = any (p_only) and (w.enabled or p_event = 'test') end
      returning id)
  select max(id) into v_id from told;
  if v_id is not null then perform pg_notify('holdfast_webhook', ''); end if;
  return v_id;
end $$;

create or replace function holdfast.webhook_crawl_sealed()
  returns trigger language plpgsql as $$
begin
  perform holdfast.webhook_tell('crawl.sealed', new.id, jsonb_build_object(
    'id', new.id, 'label', nullif(new.label, ''), 'first_url', new.first_url,
    'outcome', new.outcome, 'stop_reason', new.stop_reason,
    'snapshots', new.snapshots_total, 'succeeded', new.snapshots_succeeded,
    'partial', new.snapshots_partial, 'failed', new.snapshots_failed,
    'cancelled', new.snapshots_cancelled, 'bytes', new.bytes, 'tags', new.tags));
  return null;
end $$;

create or replace function holdfast.webhook_snapshot_failed()
  returns trigger language plpgsql as $$
-- The results of the attempt were written before, in the same transaction.
begin
  if not exists (select from holdfast.webhook) then return null; end if;
  perform holdfast.webhook_tell('snapshot.failed', new.snapshot_id, jsonb_build_object(
    'id', new.snapshot_id, 'crawl_id', new.crawl_id, 'outcome', new.outcome, 'reason', new.reason,
    'http_status', holdfast.fact_integer(new.facts, 'http_status'),
    'attempts', new.attempts,
    'url', (select s.url
              from holdfast.snapshot s
              where s.id = new.snapshot_id and s.crawl_id = new.crawl_id),
    'error', (select left(string_agg(r.plugin || ': ' || split_part(r.error, E'\n', 1), '; '
                                     order by r.hook_name), 1000)
                from holdfast.archive_result r
                where r.snapshot_id = new.snapshot_id and r.crawl_id = new.crawl_id
                  and r.fence = new.fence and r.status = 'failed')));
  return null;
end $$;

create or replace function holdfast.webhook_page_changed()
  returns trigger language plpgsql as $$
begin
  if not exists (select from holdfast.webhook) then return null; end if;
  perform holdfast.webhook_tell('page.changed', new.snapshot_id, to_jsonb(c) - 'tags')
    from holdfast.v_change c
    where c.id = new.snapshot_id and c.crawl_id = new.crawl_id;
  return null;
end $$;

create or replace function holdfast.webhook_worker_lapsed()
  returns trigger language plpgsql as $$
begin
  perform holdfast.webhook_tell('worker.lapsed', new.id, jsonb_build_object(
    'id', new.id, 'label', new.label, 'type', new.process_type, 'machine', new.machine_id,
    'last_heartbeat', new.heartbeat_at, 'started_at', new.started_at));
  return null;
end $$;

create or replace function holdfast.webhook_set(p_name text, p_url text, p_events text[], p_by text)
  returns void language plpgsql as $$
-- No events: all of them.
begin
  insert into holdfast.webhook (name, url, events, changed_by)
    values (p_name, p_url,
      case when p_events = '{}' and p_url ~ '^http' then holdfast.webhook_events() else p_events end,
      holdfast.who(p_by))
    on conflict (name) do update
      set url = excluded.url, events = excluded.events, changed_by = excluded.changed_by,
          enabled = true, note = null, failures = 0, hold_until = null;
exception when check_violation or not_null_violation then
  raise exception 'invalid name, URL or events of webhook "%"', p_name using errcode = 'HF004',
    hint = 'The name has lower case letters, digits, ".", "_" and "-"; the URL is http or https, '
           'without a user, or mailto:ADDRESS, or apprise:TAG; the events are '
           || array_to_string(holdfast.webhook_events(), ', ') || '.';
end $$;
comment on function holdfast.webhook_set is 'Adds a webhook, or changes and enables one.';

create or replace function holdfast.webhook_find(p_name text)
  returns void language plpgsql as $$
-- Locks a webhook.
begin
  perform from holdfast.webhook where name = p_name for no key update;
  if not found then
    raise exception 'there is no webhook "%"', p_name
      using errcode = 'HF004', hint = 'select name from holdfast.v_webhook';
  end if;
end $$;

create or replace function holdfast.webhook_enable(p_name text, p_enabled boolean, p_by text)
  returns void language plpgsql as $$
-- Waiting deliveries stay, and go out when it is enabled again.
begin
  perform holdfast.webhook_find(p_name);
  update holdfast.webhook
    set enabled = p_enabled, changed_by = holdfast.who(p_by), failures = 0, hold_until = null,
        note = case when not p_enabled then 'paused by ' || holdfast.who(p_by) end
    where name = p_name;
  if p_enabled then perform pg_notify('holdfast_webhook', ''); end if;
end $$;
comment on function holdfast.webhook_enable is 'Pauses or resumes a webhook.';

create or replace function holdfast.webhook_remove(p_name text)
  returns void language plpgsql as $$
begin
  perform holdfast.webhook_find(p_name);
  delete from holdfast.webhook where name = p_name;
end $$;
comment on function holdfast.webhook_remove is 'Removes a webhook and its waiting deliveries.';

create or replace function holdfast.webhook_retry(p_name text, p_by text)
  returns bigint language plpgsql as $$
declare
  v_count bigint;
begin
  perform holdfast.webhook_find(p_name);
  update holdfast.delivery
    set status = 'waiting', ended_at = null, retry_at = clock_timestamp(), attempts = 0
    where webhook = p_name and status = 'given_up';
  get diagnostics v_count = row_count;
  update holdfast.delivery
    set retry_at = clock_timestamp()
    where webhook = p_name and status = 'waiting' and owner is null and retry_at > clock_timestamp();
  update holdfast.webhook
    set given_up = greatest(0, given_up - v_count), failures = 0, hold_until = null,
        changed_by = holdfast.who(p_by)
    where name = p_name;
  perform pg_notify('holdfast_webhook', '');
  return v_count;
end $$;
comment on function holdfast.webhook_retry is 'Retries deliveries now; returns how many had been given up.';

create or replace function holdfast.webhook_test(p_name text, p_by text)
  returns bigint language plpgsql as $$
begin
  perform holdfast.webhook_find(p_name);
  return holdfast.webhook_tell('test', null, jsonb_build_object('asked_by', holdfast.who(p_by)), array[p_name]);
end $$;
comment on function holdfast.webhook_test is 'Sends a test event to a webhook; returns the delivery''s id.';

create or replace function holdfast.webhook_reaches(
    p_webhook holdfast.webhook, p_names text[], p_schemes text[])
  returns boolean language sql immutable as $$
  -- p_names: webhooks over HTTP of which a sender has the secret; NULL: all. p_schemes: of URLs that it can
  -- send to.
  select p_webhook.enabled and split_part(p_webhook.url, ':', 1) = any (p_schemes)
     and (p_names is null or p_webhook.url !~ '^http' or p_webhook.name = any (p_names))
$$;

create or replace function holdfast.webhook_claim(p_owner text,
    p_names text[], p_lease interval, p_room integer, p_schemes text[] default '{http,https}')
  returns table (id bigint, message_id text, webhook text, url text,
                 event text, payload text, fence bigint, attempts integer)
  language plpgsql as $$
-- p_names, p_schemes: as for webhook_reaches. At most four deliveries at once of each,
-- one after a failure: a receiver that hangs does not block the others, and one that is down is not flooded.
#variable_conflict use_column
declare
  v_now constant timestamptz := clock_timestamp();
begin
  update holdfast.webhook
    set asked_at = v_now
    where name in (select w.name
                     from holdfast.webhook w
                     where holdfast.webhook_reaches(w, p_names, p_schemes)
                       and (w.asked_at is null or w.asked_at < v_now - interval '30 seconds')
                     for no key update skip locked);
  return query
    with due as materialized (
      select d.id
        from holdfast.webhook w
        cross join lateral (select count(*) as busy
                              from (select
                                      from holdfast.delivery o
                                      where o.webhook = w.name and o.status = 'waiting'
                                        and o.owner is not null and o.retry_at > v_now
                                      limit 4) x) b
        cross join lateral (select o.id, o.retry_at
                              from holdfast.delivery o
                              where o.webhook = w.name and o.status = 'waiting' and o.retry_at <= v_now
                              order by o.retry_at
                              limit greatest(0, case when w.failures > 0 then 1 else 4 end - b.busy)
                              for update skip locked) d
        where holdfast.webhook_reaches(w, p_names, p_schemes)
          and (w.hold_until is null or w.hold_until <= v_now)
        order by d.retry_at limit p_room
    )
    update holdfast.delivery d
      set owner = p_owner, fence = greatest(d.fence, holdfast.fence_floor()) + 1,
          attempts = d.attempts + 1, retry_at = v_now + p_lease
      from due, holdfast.webhook w, holdfast.collection c
      where d.id = due.id and w.name = d.webhook
      returning d.id, left(c.id::text, 8) || '-' || d.id, d.webhook, w.url, d.event, d.payload, d.fence,
                d.attempts;
end $$;
comment on function holdfast.webhook_claim is 'Takes due deliveries for p_lease.';

create or replace function holdfast.webhook_back_off(p_attempts integer)
  returns interval language sql volatile as $$
  -- 5 s, 10 s, 20 s, ... at most an hour, with 10 % jitter.
  select least(interval '5 seconds' * power(2, least(greatest(p_attempts, 1) - 1, 12)), interval '1 hour')
         * (0.9 + 0.2 * random())
$$;

create or replace function holdfast.webhook_report(p_id bigint,
    p_fence bigint, p_status integer, p_error text, p_gone boolean)
  returns boolean language plpgsql as $$
-- p_error NULL: it was delivered. p_gone: the receiver rejects further events (410). Returns false if the
-- caller lost its claim, so nothing was changed.
declare
  v_row holdfast.delivery;
  v_now constant timestamptz := clock_timestamp();
  v_error constant text := left(p_error, 500);
  v_over boolean;
begin
  select * into v_row
    from holdfast.delivery d
    where d.id = p_id and d.fence = p_fence and d.status = 'waiting' and d.owner is not null for update;
  if not found then return false; end if;
  v_over := p_error is null or p_gone
    or v_row.created_at < v_now - interval '3 days' and v_row.attempts >= 10;
  update holdfast.delivery
    set owner = null, last_status = p_status, last_error = v_error,
        status = case when not v_over then 'waiting'
                      when p_error is null then 'delivered'
                      else 'given_up' end,
        ended_at = case when v_over then v_now end,
        retry_at = case when not v_over then v_now + holdfast.webhook_back_off(v_row.attempts) end
    where id = p_id;
  update holdfast.webhook
    set last_status = p_status, last_error = v_error,
        delivered = delivered + (p_error is null)::integer,
        given_up = given_up + (p_error is not null and v_over)::integer,
        delivered_at = case when p_error is null then v_now else delivered_at end,
        failures = case when p_error is null then 0 else failures + 1 end,
        hold_until = case when p_error is not null then
          v_now + least(holdfast.webhook_back_off(failures + 1), interval '5 minutes') end,
        enabled = enabled and (p_error is null or not p_gone),
        note = case when p_error is not null and p_gone then 'its receiver said that it is gone (410)'
                    else note end
    where name = v_row.webhook;
  return true;
end $$;
comment on function holdfast.webhook_report is 'Stores the result of a delivery.';

create or replace function holdfast.webhook_release(p_id bigint, p_fence bigint)
  returns void language sql as $$
  -- The deliverer leaves during an attempt. The receiver may have the event already; it can compare the id.
  update holdfast.delivery
    set owner = null, retry_at = clock_timestamp(), attempts = attempts - 1
    where id = p_id and fence = p_fence and status = 'waiting' and owner is not null
$$;
comment on function holdfast.webhook_release is 'Releases a delivery without a result.';

create or replace function holdfast.webhook_wait(p_names text[], p_schemes text[] default '{http,https}')
  returns interval language sql stable as $$
  select greatest(min(greatest(d.retry_at, w.hold_until)) - clock_timestamp(), interval '0')
    from holdfast.webhook w
    cross join lateral (select o.retry_at
                          from holdfast.delivery o
                          where o.webhook = w.name and o.status = 'waiting'
                          order by o.retry_at limit 1) d
    where holdfast.webhook_reaches(w, p_names, p_schemes)
    having count(*) > 0
$$;
comment on function holdfast.webhook_wait is 'Returns how long a deliverer may sleep; NULL: no delivery waits.';

create or replace function holdfast.webhook_shown(p_url text)
  returns text language sql immutable as $$
  select coalesce(substring(p_url from '^https?://[^/]+'), p_url)
$$;
comment on function holdfast.webhook_shown is 'Returns what of the URL of a webhook is no secret.';

create or replace function holdfast.why_webhook(p_name text)
  returns table (reason text, facts jsonb) language plpgsql stable as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_row holdfast.webhook;
  v_waiting bigint;
  v_text text;
  v_sending text;
begin
  select * into v_row from holdfast.webhook w where w.name = p_name;
  if not found then return; end if;
  select count(*) into v_waiting
    from (select from holdfast.delivery d where d.webhook = p_name and d.status = 'waiting' limit 1000) x;
  select d.owner into v_sending
    from holdfast.delivery d
    where d.webhook = p_name and d.status = 'waiting' and d.owner is not null and d.retry_at > v_now
    limit 1;
  v_text := case v_waiting when 0 then 'nothing waits'
                           when 1 then '1 delivery waits'
                           when 1000 then '1000 deliveries or more wait'
                           else v_waiting || ' deliveries wait' end;
  facts := jsonb_build_object('waiting', v_waiting, 'origin', holdfast.webhook_shown(v_row.url))
    || (select jsonb_object_agg(key, value)
          from jsonb_each(jsonb_strip_nulls(to_jsonb(v_row)))
          where key = any (
            '{events,delivered,given_up,failures,hold_until,asked_at,last_status,last_error}'::text[]));
  reason := case
    when not v_row.enabled then
      format('It is not enabled (%s) and %s.', coalesce(v_row.note, 'no reason given'), v_text)
    when v_waiting = 0 then
      concat('Nothing waits for it',
             '; the last delivery succeeded at ' || holdfast.people_time(v_row.delivered_at), '.')
    when coalesce(v_row.asked_at, v_row.created_at) < v_now - interval '2 minutes'
         or v_row.asked_at is null and v_sending is null then
      concat(v_text, ', but no worker or runner that has its ',
        case split_part(v_row.url, ':', 1)
          when 'mailto' then 'server (mail.server)'
          when 'apprise' then 'services (apprise.config), and the program apprise,'
          else 'secret (webhooks.secret_file)' end,
        ' has asked for work', ' since ' || holdfast.people_time(v_row.asked_at), '.')
    when v_sending is not null then format('%s, and %s is sending now.', v_text, v_sending)
    when v_row.hold_until > v_now then
      format('%s: its receiver failed %s in a row (%s), it is tried again at %s.', v_text,
        holdfast.people_count(v_row.failures, 'time'), coalesce(v_row.last_error, 'no reason given'),
        holdfast.people_time(v_row.hold_until))
    else v_text || ' and will be sent in a moment.' end;
  return next;
end $$;
comment on function holdfast.why_webhook is 'Returns why a webhook is sent nothing, or what it waits for.';

create or replace view holdfast.v_webhook as
  select w.name, holdfast.webhook_shown(w.url) || case when w.url ~ '^http' then '/…' else '' end as url,
         w.events, w.enabled,
         (y.facts ->> 'waiting')::bigint as waiting, w.delivered, w.given_up, w.failures, w.hold_until,
         w.delivered_at, w.last_status, w.last_error, y.reason, w.changed_by, w.created_at
    from holdfast.webhook w
    cross join lateral holdfast.why_webhook(w.name) y;
comment on view holdfast.v_webhook is
  'Webhooks: their events, how many deliveries wait, and the last result.';
comment on column holdfast.v_webhook.waiting is 'Deliveries that wait; 1000: so many, or more.';
comment on column holdfast.v_webhook.url is 'Origin of the URL; the rest may be secret.';
comment on column holdfast.v_webhook.reason is 'See holdfast.why().';

create or replace view holdfast.v_delivery as
  select d.id, d.webhook, d.event, d.object_id, d.status, d.created_at, d.retry_at, d.owner, d.attempts,
         d.last_status, d.last_error, d.ended_at, d.payload
    from holdfast.delivery d;
comment on view holdfast.v_delivery is 'Events sent to webhooks, and those that wait (retry_at: for what).';

create or replace trigger webhook_crawl_sealed after update of status on holdfast.crawl
  for each row when (new.status = 'sealed' and old.status <> 'sealed')
  execute function holdfast.webhook_crawl_sealed();
create or replace trigger webhook_snapshot_failed after insert on holdfast.snapshot_sealed
  for each row when (new.outcome in ('failed', 'quarantined', 'refused'))
  execute function holdfast.webhook_snapshot_failed();
create or replace trigger webhook_page_changed after insert on holdfast.snapshot_sealed
  for each row when (new.facts ->> 'change' not in ('first', 'same'))
  execute function holdfast.webhook_page_changed();
create or replace trigger webhook_worker_lapsed after update of status on holdfast.process
  for each row when (new.status = 'exited' and old.status = 'running' and new.exit_reason = 'lease lapsed'
             and new.process_type <> 'command')
  execute function holdfast.webhook_worker_lapsed();
