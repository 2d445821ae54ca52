-- Rows of runs that are not there. No row: none.
select 'payload of run', run_id, 'is left over' from payloads p where not exists (select 1 from runs r where r.run_id = p.run_id)
union all
select 'step', step_id, 'is left over' from steps s where not exists (select 1 from runs r where r.run_id = s.run_id)
union all
select 'tag of run', run_id, 'is left over' from run_tags g where not exists (select 1 from runs r where r.run_id = g.run_id)
