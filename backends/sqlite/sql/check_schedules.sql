-- Schedules that contradict themselves or the ticks that they fired. No row: none.
select 'schedule', schedule_id, 'has counted less than nothing'
from schedules
where fired < 0 or completed < 0 or failed < 0 or skipped < 0
union all
select 'schedule', schedule_id, 'counts more runs that have ended than it fired'
from schedules
where completed + failed > fired
union all
select 'schedule', schedule_id, 'has fired ' || fired || ' runs, but more of its ticks have their record'
from schedules s
where (select count(*) from fires f where f.schedule_id = s.schedule_id) > fired
union all
select 'schedule', schedule_id, 'keeps a tick back, but none of its ticks has to wait'
from schedules
where buffered is not null and overlap <> 3
union all
select 'fired tick of schedule', f.schedule_id, 'has a run that another has started'
from fires f
join runs r on r.run_id = f.run_id
where replace(r.schedule_id, '-', '') <> lower(hex(f.schedule_id))
