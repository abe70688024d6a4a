-- Webhooks: who is told, claiming what waits, and what came of it. A delivery is claimed for p_lease; whoever has it reports by
-- (id, fence), and when nobody does, the next claim takes it: at least once, never lost.

create or replace function holdfast.webhook_set(p_name text, p_url text, p_events text[], p_by text) returns void language plpgsql as $$
begin
  if p_name !~ '^[a-z0-9][a-z0-9._-]{0,62}$' then
    raise exception '"%" is no name for a webhook: lower case letters, digits, ".", "_" and "-"', p_name using errcode = 'HF004';
  elsif p_url !~ '^https?://[^/?#@]+/' or length(p_url) > 2048 then
    raise exception 'a webhook needs an http or https URL without a user or password in it' using errcode = 'HF004';
  elsif cardinality(p_events) = 0 or not p_events <@ '{crawl.sealed,snapshot.failed,node.lost}'::text[] then
    raise exception 'a webhook is told of crawl.sealed, snapshot.failed or node.lost, not of %', p_events using errcode = 'HF004';
  end if;
  insert into holdfast.webhook as w (name, url, events, changed_by) values (p_name, p_url, p_events, p_by)
    on conflict (name) do update set url = excluded.url, events = excluded.events, changed_by = excluded.changed_by, enabled = true, note = null,
      failures = 0, hold_until = null;
end $$;
comment on function holdfast.webhook_set(text, text, text[], text) is 'Adds a webhook, or changes and enables one.';

create or replace function holdfast.webhook_find(p_name text) returns void language plpgsql as $$
begin
  perform from holdfast.webhook where name = p_name for no key update;
  if not found then raise exception 'there is no webhook "%"', p_name using errcode = 'HF004', hint = 'select name from holdfast.v_webhook'; end if;
end $$;
comment on function holdfast.webhook_find(text) is 'Locks a webhook; refuses a name that none has.';

create or replace function holdfast.webhook_enable(p_name text, p_enabled boolean, p_by text) returns void language plpgsql as $$
-- What waits for it stays, and goes out when it is enabled again.
begin
  perform holdfast.webhook_find(p_name);
  update holdfast.webhook set enabled = p_enabled, changed_by = p_by, note = case when p_enabled then null else 'paused by ' || p_by end,
      failures = 0, hold_until = null
    where name = p_name;
  if p_enabled then perform pg_notify('holdfast_webhook', ''); end if;
end $$;
comment on function holdfast.webhook_enable(text, boolean, text) is 'Pauses or resumes a webhook.';

create or replace function holdfast.webhook_remove(p_name text) returns void language plpgsql as $$
begin
  perform holdfast.webhook_find(p_name);
  delete from holdfast.webhook where name = p_name;
end $$;
comment on function holdfast.webhook_remove(text) is 'Removes a webhook and what waits for it.';

create or replace function holdfast.webhook_retry(p_name text, p_by text) returns bigint language plpgsql as $$
declare
  v_count bigint;
begin
  perform holdfast.webhook_find(p_name);
  update holdfast.delivery set status = 'waiting', ended_at = null, retry_at = clock_timestamp(), attempts = 0
    where webhook = p_name and status = 'given_up';
  get diagnostics v_count = row_count;
  update holdfast.delivery set retry_at = clock_timestamp() where webhook = p_name and status = 'waiting' and owner is null and retry_at > clock_timestamp();
  update holdfast.webhook set given_up = greatest(0, given_up - v_count), failures = 0, hold_until = null, changed_by = p_by where name = p_name;
  perform pg_notify('holdfast_webhook', '');
  return v_count;
end $$;
comment on function holdfast.webhook_retry(text, text) is 'Tries at once what waits, and again what was given up; returns how many of those.';

create or replace function holdfast.webhook_test(p_name text, p_by text) returns bigint language plpgsql as $$
declare
  v_id bigint;
begin
  perform holdfast.webhook_find(p_name);
  insert into holdfast.delivery (webhook, event, payload)
    values (p_name, 'test', jsonb_build_object('type', 'test', 'timestamp', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      'data', jsonb_build_object('asked_by', p_by))::text)
    returning id into v_id;
  perform pg_notify('holdfast_webhook', '');
  return v_id;
end $$;
comment on function holdfast.webhook_test(text, text) is 'Sends something harmless to a webhook; returns the delivery''s id.';

create or replace function holdfast.webhook_claim(p_owner text, p_names text[], p_lease interval, p_room integer)
  returns table (id bigint, message_id text, webhook text, url text, event text, payload text, fence bigint, attempts integer)
  language plpgsql set plan_cache_mode = force_custom_plan as $$
-- Takes what is due of the webhooks that the caller has a secret for; p_names NULL: of all. At most four at once of each, one after it
-- failed: a receiver that hangs keeps nobody else's from being sent, and one that is down is not shouted at.
#variable_conflict use_column
declare
  v_now constant timestamptz := clock_timestamp();
begin
  update holdfast.webhook set asked_at = v_now
    where name in (select w.name from holdfast.webhook w
                     where w.enabled and (p_names is null or w.name = any (p_names)) and (w.asked_at is null or w.asked_at < v_now - interval '30 seconds')
                     for no key update skip locked);
  return query
    with due as materialized (
      select d.id from holdfast.webhook w
        cross join lateral (select count(*) as busy from (select from holdfast.delivery o
                              where o.webhook = w.name and o.status = 'waiting' and o.owner is not null and o.retry_at > v_now limit 4) x) b
        cross join lateral (select o.id, o.retry_at from holdfast.delivery o
                              where o.webhook = w.name and o.status = 'waiting' and o.retry_at <= v_now
                              order by o.retry_at limit greatest(0, case when w.failures > 0 then 1 else 4 end - b.busy) for update skip locked) d
        where w.enabled and (p_names is null or w.name = any (p_names)) and (w.hold_until is null or w.hold_until <= v_now)
        order by d.retry_at limit p_room
    )
    update holdfast.delivery d set owner = p_owner, fence = d.fence + 1, attempts = d.attempts + 1, retry_at = v_now + p_lease
      from due, holdfast.webhook w where d.id = due.id and w.name = d.webhook
      returning d.id, (select left(c.id::text, 8) from holdfast.collection c) || '-' || d.id, d.webhook, w.url, d.event, d.payload, d.fence, d.attempts;
end $$;
comment on function holdfast.webhook_claim(text, text[], interval, integer) is 'Takes deliveries that are due; who takes them has p_lease to report.';

create or replace function holdfast.webhook_back_off(p_attempts integer) returns interval language sql volatile as $$
  -- 5 s, 10 s, 20 s, ... at most an hour; a tenth more or less, so that what failed together does not come back together.
  select least(interval '5 seconds' * power(2, least(greatest(p_attempts, 1) - 1, 12)), interval '1 hour') * (0.9 + 0.2 * random())
$$;
comment on function holdfast.webhook_back_off(integer) is 'How long to wait after so many failed attempts.';

create or replace function holdfast.webhook_report(p_id bigint, p_fence bigint, p_status integer, p_error text, p_gone boolean) returns boolean language plpgsql as $$
-- What came of an attempt; p_error NULL: its receiver said yes. False: the claim is not the caller's any more, nothing is changed.
-- p_gone: the receiver does not want to be told ever again (410).
declare
  v_row holdfast.delivery;
  v_now constant timestamptz := clock_timestamp();
  v_over boolean;
begin
  select * into v_row from holdfast.delivery d where d.id = p_id and d.fence = p_fence and d.status = 'waiting' and d.owner is not null for update;
  if not found then return false; end if;
  if p_error is null then
    update holdfast.delivery set status = 'delivered', ended_at = v_now, retry_at = null, owner = null, last_status = p_status, last_error = null where id = p_id;
    update holdfast.webhook set delivered = delivered + 1, delivered_at = v_now, failures = 0, hold_until = null, last_status = p_status, last_error = null
      where name = v_row.webhook;
    return true;
  end if;
  v_over := p_gone or v_row.created_at < v_now - interval '3 days' and v_row.attempts >= 10;
  update holdfast.delivery set owner = null, last_status = p_status, last_error = left(p_error, 500),
      status = case when v_over then 'given_up' else 'waiting' end, ended_at = case when v_over then v_now end,
      retry_at = case when not v_over then v_now + holdfast.webhook_back_off(v_row.attempts) end
    where id = p_id;
  update holdfast.webhook set failures = failures + 1, hold_until = v_now + least(holdfast.webhook_back_off(failures + 1), interval '5 minutes'),
      last_status = p_status, last_error = left(p_error, 500), given_up = given_up + v_over::integer,
      enabled = enabled and not p_gone, note = case when p_gone then 'its receiver said that it is gone (410)' else note end
    where name = v_row.webhook;
  return true;
end $$;
comment on function holdfast.webhook_report(bigint, bigint, integer, text, boolean) is 'What came of an attempt to deliver.';

create or replace function holdfast.webhook_hand_back(p_id bigint, p_fence bigint) returns void language sql as $$
  -- Its sender leaves in the middle of an attempt: another may try at once. The receiver may have it already; it knows it by its id.
  update holdfast.delivery set owner = null, retry_at = clock_timestamp(), attempts = attempts - 1
    where id = p_id and fence = p_fence and status = 'waiting' and owner is not null
$$;
comment on function holdfast.webhook_hand_back(bigint, bigint) is 'Ends a claim of a delivery without an outcome.';

create or replace function holdfast.webhook_wait(p_names text[]) returns interval language sql stable as $$
  -- How long until something may be due; NULL: nothing waits.
  select greatest(min(greatest(d.retry_at, w.hold_until)) - clock_timestamp(), interval '0')
    from holdfast.webhook w
    cross join lateral (select o.retry_at from holdfast.delivery o where o.webhook = w.name and o.status = 'waiting' order by o.retry_at limit 1) d
    where w.enabled and (p_names is null or w.name = any (p_names))
$$;
comment on function holdfast.webhook_wait(text[]) is 'How long a deliverer that found nothing may sleep.';

create or replace function holdfast.duty_trim_deliveries(p_duty holdfast.duty) returns bigint language plpgsql as $$
declare
  v_count bigint;
begin
  delete from holdfast.delivery where id in
    (select d.id from holdfast.delivery d where d.status <> 'waiting' and d.ended_at < clock_timestamp() - p_duty.keep order by d.ended_at limit p_duty.batch);
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.duty_trim_deliveries(holdfast.duty) is 'Deletes deliveries that ended longer ago than keep.';

create or replace function holdfast.why_webhook(p_name text) returns table (reason text, facts jsonb) language plpgsql stable as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_row holdfast.webhook;
  v_waiting bigint;
  v_text text;
  v_sending text;
begin
  select * into v_row from holdfast.webhook w where w.name = p_name;
  if not found then return; end if;
  select count(*) into v_waiting from (select from holdfast.delivery d where d.webhook = p_name and d.status = 'waiting' limit 1000) x;
  select d.owner into v_sending from holdfast.delivery d where d.webhook = p_name and d.status = 'waiting' and d.owner is not null and d.retry_at > v_now limit 1;
  v_text := case v_waiting when 0 then 'nothing waits' when 1000 then '1000 deliveries or more wait'
              else v_waiting || case v_waiting when 1 then ' delivery waits' else ' deliveries wait' end end;
  facts := jsonb_strip_nulls(jsonb_build_object('origin', substring(v_row.url from '^https?://[^/]+'), 'events', v_row.events, 'waiting', v_waiting, 'delivered', v_row.delivered,
    'given_up', v_row.given_up, 'failures', v_row.failures, 'hold_until', v_row.hold_until, 'asked_at', v_row.asked_at, 'last_status', v_row.last_status, 'last_error', v_row.last_error));
  if not v_row.enabled then
    reason := 'It is not enabled (' || coalesce(v_row.note, 'nobody said why') || ') and ' || v_text || '.';
  elsif v_waiting = 0 then
    reason := 'Nothing waits for it' || coalesce('; the last delivery succeeded at ' || holdfast.people_time(v_row.delivered_at), '') || '.';
  elsif coalesce(v_row.asked_at, v_row.created_at) < v_now - interval '2 minutes' or v_row.asked_at is null and v_sending is null then
    reason := initcap(left(v_text, 1)) || substr(v_text, 2) || ', but no node and no runner that has its secret (webhooks.secret_file) has asked for work'
      || coalesce(' since ' || holdfast.people_time(v_row.asked_at), '') || '.';
  elsif v_sending is not null then
    reason := initcap(left(v_text, 1)) || substr(v_text, 2) || ', and ' || v_sending || ' is sending now.';
  elsif v_row.hold_until > v_now then
    reason := initcap(left(v_text, 1)) || substr(v_text, 2) || ': its receiver failed ' || holdfast.people_count(v_row.failures, 'time') || ' in a row ('
      || coalesce(v_row.last_error, 'no reason given') || '), it is tried again at ' || holdfast.people_time(v_row.hold_until) || '.';
  else
    reason := initcap(left(v_text, 1)) || substr(v_text, 2) || ' and will be sent in a moment.';
  end if;
  return next;
end $$;
comment on function holdfast.why_webhook(text) is 'Why a webhook is told nothing, or what it waits for.';

create or replace view holdfast.v_webhook as
  select w.name, substring(w.url from '^https?://[^/]+') || '/…' as url, w.events, w.enabled,
         (y.facts ->> 'waiting')::bigint as waiting,
         w.delivered, w.given_up, w.failures, w.hold_until, w.delivered_at, w.last_status, w.last_error, y.reason, w.changed_by, w.created_at
    from holdfast.webhook w cross join lateral holdfast.why_webhook(w.name) y;
comment on view holdfast.v_webhook is 'Webhooks: who is told what, what waits for them (1000: so many, or more), and how the last attempt ended.';
comment on column holdfast.v_webhook.url is 'Its origin; the rest may be secret.';
comment on column holdfast.v_webhook.reason is 'As holdfast.why() says.';

create or replace view holdfast.v_delivery as
  select d.id, d.webhook, d.event, d.object_id, d.status, d.created_at, d.retry_at, d.owner, d.attempts, d.last_status, d.last_error, d.ended_at, d.payload
    from holdfast.delivery d;
comment on view holdfast.v_delivery is 'What was and is to be sent to webhooks. retry_at: when it is tried, or, while it has an owner, until when that one has it.';

create or replace function holdfast.list_webhooks(p_limit bigint) returns setof holdfast.v_webhook language sql stable as $$
  select * from holdfast.v_webhook order by name limit p_limit
$$;
comment on function holdfast.list_webhooks(bigint) is 'Webhooks: holdfast list webhooks.';

create or replace function holdfast.list_deliveries(p_status text, p_limit bigint) returns setof holdfast.v_delivery language sql stable as $$
  select * from holdfast.v_delivery where (p_status is null or status = p_status) order by id desc limit p_limit
$$;
comment on function holdfast.list_deliveries(text, bigint) is 'Deliveries, filtered: holdfast list deliveries.';
