-- Answers that were remembered for a run that is not there. No row: none. Keys hold what SQLite's check looks for besides.
select 'request of run', run_id, 'is left over' from requests q where not exists (select from runs r where r.run_id = q.run_id)
union all
select 'receipt of run', run_id, 'is left over' from receipts c where not exists (select from runs r where r.run_id = c.run_id)
