-- Runs whose count of steps or bytes is wrong; the lease holds the counts of a RUNNING run. No row: none.
select 'run', r.run_id, 'counts ' || coalesce(l.steps, r.steps) || ' steps and has ' || count(distinct s.name)
from runs r
left join leases l on l.run_id = r.run_id
left join steps s on s.run_id = r.run_id
group by r.run_id, l.steps
having coalesce(l.steps, r.steps) <> count(distinct s.name)
union all
select 'run', r.run_id, 'counts fewer bytes than the results of its steps have'
from runs r
left join leases l on l.run_id = r.run_id
join (select run_id, sum(octet_length(output)) as bytes from steps group by run_id) s on s.run_id = r.run_id
where coalesce(l.bytes, r.bytes) < s.bytes
