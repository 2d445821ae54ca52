-- When the next run of the lanes becomes due. NULL: none waits.
with meeting as materialized (
    select lane_id, workflow_type, priority from lanes
    where namespace = @namespace and task_queue = @task_queue and workflow_type = any(@types::text[])
      and exists (select from namespaces n where n.namespace = @namespace and n.enabled)
      and (requirements = '' or not exists (
          select from jsonb_each_text(requirements::jsonb) as r (key, value)
          where not exists (
              select from unnest(@offer_keys::text[], @offer_values::text[]) as o (key, value)
              where o.key = r.key and (r.value = '' or o.value = r.value))))
)
select min(h.available_at)
from meeting m
cross join lateral (
    select available_at from runs
    where lane_id = m.lane_id and status in (1, 3) and available_at > @now
    order by available_at
    limit 1
) h
