-- The heads of the lanes, in claim order, without locks, with the number of leases of their concurrency key. No row:
-- nothing is due.
with matching as materialized (
    select lane_id, workflow_type, priority from lanes
    where namespace = @namespace and task_queue = @task_queue and workflow_type = any(@types::text[])
      and exists (select from namespaces n where n.namespace = @namespace and n.enabled)
      and (requirements = '' or not exists (
          select from jsonb_each_text(requirements::jsonb) as r (key, value)
          where not exists (
              select from unnest(@offer_keys::text[], @offer_values::text[]) as o (key, value)
              where o.key = r.key and (r.value = '' or o.value = r.value))))
)
select
    h.run_id, h.available_at, m.workflow_type, h.concurrency_key, h.concurrency_limit, case when h.concurrency_key = '' then 0 else (
        select count(*) from leases l
        where l.namespace = @namespace and l.workflow_type = m.workflow_type and l.concurrency_key = h.concurrency_key
          and l.concurrency_key <> '') end
from matching m
cross join lateral (
    select run_id, available_at, concurrency_key, concurrency_limit from runs
    where lane_id = m.lane_id and available_at <= @now
    order by available_at, run_id
    limit @heads
) h
order by m.priority desc, h.available_at, h.run_id
