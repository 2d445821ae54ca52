-- How many places of each type's concurrency key are taken: by leases, and by open runs. One row per key.
select k.workflow_type, k.concurrency_key, (
    select count(*) from leases l
    where l.namespace = @namespace and l.workflow_type = k.workflow_type and l.concurrency_key = k.concurrency_key and l.concurrency_key <> ''
) + (
    select count(*) from runs r
    where r.namespace = @namespace and r.workflow_type = k.workflow_type and r.concurrency_key = k.concurrency_key and r.has_place and r.status <= 3)
from unnest(@types::text[], @keys::text[]) as k (workflow_type, concurrency_key)
