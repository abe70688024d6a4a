-- People who sign in by hand (services/worker/session/sign_ins.hpp, services/serve/site.cpp).

create or replace function holdfast.sign_in_ask(p_id uuid, p_persona text, p_url text, p_by text)
  returns void language plpgsql as $$
-- The first wins. A sign-in that has failed or is past its deadline gives way; one whose worker lapses is
-- deleted then.
declare
  v_other holdfast.persona_sign_in;
begin
  delete from holdfast.persona_sign_in s
    where s.deadline <= clock_timestamp() or (s.persona = p_persona and s.problem is not null);
  if not exists (select from holdfast.persona where name = p_persona) then
    perform holdfast.persona_set(p_persona, '{}', holdfast.who(p_by));
  end if;
  insert into holdfast.persona_sign_in (persona, id, url, asked_by, deadline)
    values (p_persona, p_id, p_url, holdfast.who(p_by), clock_timestamp() + interval '20 minutes')
    on conflict (persona) do nothing;
  if not found then
    select * into v_other from holdfast.persona_sign_in where persona = p_persona;
    raise exception '% is signing in to the persona "%" since % UTC',
        coalesce(v_other.viewer, v_other.asked_by), p_persona,
        to_char(v_other.asked_at at time zone 'UTC', 'HH24:MI:SS')
      using errcode = 'HF004',
            hint = format('It ends at %s UTC at the latest.',
                          to_char(v_other.deadline at time zone 'UTC', 'HH24:MI:SS'));
  end if;
  perform pg_notify('holdfast', 'sign_in');
end $$;
comment on function holdfast.sign_in_ask is
  'Requests a browser from the workers, to sign in to a persona; the persona is made if need be.';

create or replace function holdfast.sign_in_take(p_worker uuid)
  returns table (id uuid, persona text, url text, asked_by text, address text, left_ms bigint)
  language plpgsql as $$
declare
  v_can constant jsonb := (select p.capabilities from holdfast.process p where p.id = p_worker);
begin
  perform holdfast.mine(p_worker);
  if not holdfast.worker_may_claim(p_worker) then return; end if;
  return query
    update holdfast.persona_sign_in s
      set process_id = p_worker
      where s.persona = (select o.persona
                           from holdfast.persona_sign_in o
                           where o.process_id is null and o.problem is null
                             and o.deadline > clock_timestamp()
                             and holdfast.persona_lacks(o.persona, v_can, p_to_sign_in => true) is null
                           order by o.asked_at
                           limit 1
                           for update skip locked)
      returning s.id, s.persona, s.url, s.asked_by, coalesce(host(inet_client_addr()), '127.0.0.1'),
                (extract(epoch from s.deadline - clock_timestamp()) * 1000)::bigint;
end $$;
comment on function holdfast.sign_in_take is 'Takes a waiting sign-in for a worker; no row: none waits.';

create or replace function holdfast.sign_in_ready(
    p_worker uuid, p_id uuid, p_address inet, p_port integer, p_certificate_hash text)
  returns boolean language plpgsql as $$
begin
  perform holdfast.mine(p_worker);
  update holdfast.persona_sign_in
    set address = p_address, port = p_port, certificate = decode(p_certificate_hash, 'hex')
    where id = p_id and process_id = p_worker;
  return found;
end $$;
comment on function holdfast.sign_in_ready is
  'Records that the browser can be reached. Returns false if the sign-in has ended.';

create or replace function holdfast.sign_in_open(p_id uuid, p_by text, p_key_hash text)
  returns table (address text, port integer, certificate_hash text, waits text, problem text)
  language plpgsql as $$
-- p_key_hash: SHA-256 of a key made for this one connection, as hexadecimal digits. waits: for what, as long
-- as there is no port.
declare
  v_own holdfast.persona_sign_in;
begin
  select * into v_own
    from holdfast.persona_sign_in s
    where s.id = p_id and s.deadline > clock_timestamp()
    for update;
  if not found then return; end if;
  if v_own.viewer <> holdfast.who(p_by) then
    raise exception '% has opened this view', v_own.viewer
      using errcode = 'HF004', hint = 'Start a sign-in of your own once it has ended.';
  end if;
  -- A notification may be lost, and a worker may come that has heard none.
  if v_own.process_id is null then perform pg_notify('holdfast', 'sign_in'); end if;
  return query
    update holdfast.persona_sign_in s
      set viewer = holdfast.who(p_by), key_hash = decode(p_key_hash, 'hex')
      where s.id = p_id
      returning host(s.address), s.port, encode(s.certificate, 'hex'),
                case
                  when s.process_id is not null then 'Its browser starts.'
                  else (select coalesce('No worker can take it: '
                                          || string_agg(distinct l.lacks, '; ') || '.',
                                        'No worker runs: "holdfast worker" starts one.')
                          from holdfast.process p
                          cross join lateral holdfast.persona_lacks(s.persona, p.capabilities, true) l(lacks)
                          where p.process_type = 'worker' and p.status = 'running')
                end,
                s.problem;
end $$;
comment on function holdfast.sign_in_open is
  'Lets a server connect to the browser once, for a user. No row: there is no such sign-in. Port NULL: its browser '
  'is not ready yet.';

create or replace function holdfast.sign_in_check(p_worker uuid, p_key_hash text)
  returns uuid language plpgsql as $$
declare
  v_id uuid;
begin
  perform holdfast.mine(p_worker);
  update holdfast.persona_sign_in
    set key_hash = null
    where process_id = p_worker and key_hash = decode(p_key_hash, 'hex')
    returning id into v_id;
  return v_id;
end $$;
comment on function holdfast.sign_in_check is
  'Returns the sign-in of this worker whose view has the key, which is then used up; NULL: none.';

create or replace function holdfast.sign_in_end(p_worker uuid, p_id uuid, p_problem text)
  returns void language plpgsql as $$
-- p_problem: why its browser never was ready; it stays until its deadline, for who waits for it. '': it was.
begin
  perform holdfast.mine(p_worker);
  if p_problem <> '' then
    update holdfast.persona_sign_in
      set process_id = null, address = null, port = null, certificate = null, problem = left(p_problem, 500)
      where id = p_id and process_id = p_worker;
  else
    delete from holdfast.persona_sign_in where id = p_id and process_id = p_worker;
  end if;
end $$;
comment on function holdfast.sign_in_end is 'Records that the browser has ended. May be repeated.';

create or replace function holdfast.sign_in_cancel(p_id uuid)
  returns boolean language plpgsql as $$
begin
  delete from holdfast.persona_sign_in where id = p_id;
  if not found then return false; end if;
  perform pg_notify('holdfast', 'sign_in_over ' || p_id);
  return true;
end $$;
comment on function holdfast.sign_in_cancel is 'Ends a sign-in. Returns false if there is none.';
