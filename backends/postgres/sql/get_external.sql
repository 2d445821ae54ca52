-- The user's run with the external id: the active one or, with @never, the newest. The subquery is written as in
-- insert_run. No row: the id is free.
select run_id, status, workflow_type
from runs
where namespace = @namespace and external_id >= @external_id and external_id <= @external_id and external_id <> '' and origin = 0
  and (@never or status <= 3)
order by external_id desc, run_id desc
limit 1
