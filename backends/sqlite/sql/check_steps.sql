-- Attempts that contradict each other or their run. No row: none does.
select 'run', run_id, 'has step "' || name || '" with ' || sum(latest) || ' latest attempts'
from steps
group by run_id, name
having sum(latest) <> 1 or max(case when latest = 1 then attempt end) <> max(attempt)
union all
select 'run', run_id, 'has step "' || name || '" at two places'
from steps
group by run_id, name
having min(sequence) <> max(sequence)
union all
select 'step', s.step_id, 'is open in a run that has ended'
from steps s
join runs r on r.run_id = s.run_id
where s.status in (1, 2) and r.status > 3
union all
select 'step', s.step_id, 'runs although nobody holds its run'
from steps s
join runs r on r.run_id = s.run_id
where s.status in (1, 2) and s.status = 2 and s.kind = 1 and r.status <> 2
