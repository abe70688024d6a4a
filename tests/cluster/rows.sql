-- Keeps every state that the row of an open page goes through, for tests/model/trace.py. A change whose
-- transaction was undone leaves nothing here.
create table holdfast.test_row (
  id bigint generated always as identity primary key,
  snapshot uuid not null, status text, fence bigint, lapses integer);

create function holdfast.test_row_keep() returns trigger language plpgsql security definer as $$
begin
  if tg_op = 'DELETE' then
    insert into holdfast.test_row (snapshot) values (old.snapshot_id);
  else
    insert into holdfast.test_row (snapshot, status, fence, lapses)
      values (new.snapshot_id, new.status, new.fence, new.lapses);
  end if;
  return null;
end $$;

create trigger test_row_made after insert or delete on holdfast.snapshot_queue
  for each row execute function holdfast.test_row_keep();
create trigger test_row_changed after update on holdfast.snapshot_queue for each row
  when ((old.status, old.owner_id, old.fence, old.lapses) is distinct from
        (new.status, new.owner_id, new.fence, new.lapses))
  execute function holdfast.test_row_keep();
