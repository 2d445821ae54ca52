-- Records ticks that were not recorded when their schedules were locked. Always one row for each.
insert into fires (schedule_id, tick, run_id, fired_at)
select * from unnest(@schedule_id::uuid[], @tick::bigint[], @run_id::uuid[], @now::bigint[])
