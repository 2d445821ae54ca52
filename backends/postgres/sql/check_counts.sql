-- Runs whose count of steps is wrong; while RUNNING the lease has it. No row: none.
select 'run', r.run_id, 'counts ' || coalesce(l.steps, r.steps) || ' steps and has ' || count(distinct s.name)
from runs r
left join leases l on l.run_id = r.run_id
left join steps s on s.run_id = r.run_id
group by r.run_id, l.steps
having coalesce(l.steps, r.steps) <> count(distinct s.name)
