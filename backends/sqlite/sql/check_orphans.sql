-- Rows of runs, steps, schedules and namespaces that do not exist. No row: none.
select 'payload of run', run_id, 'is left over' from payloads p where not exists (select 1 from runs r where r.run_id = p.run_id)
union all
select 'step', step_id, 'is left over' from steps s where not exists (select 1 from runs r where r.run_id = s.run_id)
union all
select 'tag of run', run_id, 'is left over' from run_tags g where not exists (select 1 from runs r where r.run_id = g.run_id)
union all
select 'signal of run', run_id, 'is left over' from signals i where not exists (select 1 from runs r where r.run_id = i.run_id)
union all
select 'signal of run', run_id, 'was consumed by a step that is not there'
from signals i
where i.step_name <> '' and not exists (select 1 from steps s where s.run_id = i.run_id and s.name = i.step_name)
union all
select 'fired tick of schedule', schedule_id, 'is left over'
from fires f
where not exists (select 1 from schedules s where s.schedule_id = f.schedule_id)
union all
select 'schedule', schedule_id, 'is in a namespace that is not there'
from schedules s
where not exists (select 1 from namespaces n where n.namespace = s.namespace)
union all
select 'session', session_id, 'is of a key that is not there'
from sessions s
where not exists (select 1 from api_keys k where k.key_id = s.key_id)
