-- The first runs by id that have a place of a concurrency key, by a lease or until their end. No row: none.
select run_id
from leases
where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and concurrency_key <> ''
union all
select run_id
from runs
where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and has_place = 1 and finished_at is null
order by run_id
limit @limit
