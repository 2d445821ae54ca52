-- Which ticks of schedules are recorded.
select schedule_id, tick
from fires
join unnest(@schedule_ids::uuid[], @ticks::bigint[]) as w (schedule_id, tick) using (schedule_id, tick)
