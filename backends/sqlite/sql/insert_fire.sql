-- Records a tick. No row changed: it was recorded before.
insert into fires (schedule_id, tick, run_id, fired_at) values (@schedule_id, @tick, @run_id, @now) on conflict do nothing
