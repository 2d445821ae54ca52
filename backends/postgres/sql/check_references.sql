-- Recorded answers for a run that does not exist. Foreign keys cover the rest of SQLite's check. No row: none.
select 'request of run', run_id, 'is left over' from requests q where not exists (select from runs r where r.run_id = q.run_id)
union all
select 'receipt of run', run_id, 'is left over' from receipts c where not exists (select from runs r where r.run_id = c.run_id)
