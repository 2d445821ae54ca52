-- A tick fires once. No row changed: it has fired already.
insert into fires (schedule_id, tick, run_id, fired_at) values (@schedule_id, @tick, @run_id, @now) on conflict do nothing
