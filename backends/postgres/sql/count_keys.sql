-- How many runs of each type and concurrency key are RUNNING. One row per key.
select k.workflow_type, k.concurrency_key, (
    select count(*) from leases l
    where l.namespace = @namespace and l.workflow_type = k.workflow_type and l.concurrency_key = k.concurrency_key and l.concurrency_key <> '')
from unnest(@types::text[], @keys::text[]) as k (workflow_type, concurrency_key)
