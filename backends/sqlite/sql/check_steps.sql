-- Attempts that contradict each other or their run. No row: none.
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
select 'run', run_id, 'has attempts of step "' || name || '" that are not numbered one after the other'
from steps
group by run_id, name
having min(attempt) < 1 or max(attempt) - min(attempt) + 1 <> count(*)
union all
select 'run', run_id, 'has two steps at place ' || sequence
from steps
group by run_id, sequence
having min(name) <> max(name)
union all
select 'run', run_id, 'has steps at places other than 1 to ' || count(distinct name)
from steps
group by run_id
having min(sequence) <> 1 or max(sequence) <> count(distinct name)
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
union all
select 'step', s.step_id, 'waits for a child that ' || case when c.run_id is null then 'is not there' else 'has ended' end
from steps s
left join runs c on c.run_id = s.child_run_id
where s.status in (1, 2) and s.status = 2 and s.kind = 3 and (c.run_id is null or c.status > 3 and c.continued_as is null)
union all
select 'step', s.step_id, 'is awaited although it has ended, and nothing else of its run is due'
from steps s
join runs r on r.run_id = s.run_id
where s.awaited = 1 and s.status not in (1, 2) and r.status = 3 and r.available_at is null and not r.paused and not r.gated
