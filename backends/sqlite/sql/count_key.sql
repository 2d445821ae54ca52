-- How many runs of a type and a concurrency key are RUNNING. Always one row.
select count(*)
from leases
where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and concurrency_key <> ''
