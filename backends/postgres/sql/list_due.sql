-- The due runs that wait apart and that the build may have, as in claim.sql, and then the heads of the lanes, both in claim order, without locks, with the concurrency
-- key of which they need a place, and how many places of it are taken. No row: nothing is due.
with recursive matching as materialized (
    select lane_id, workflow_type, priority from lanes
    where namespace = @namespace and task_queue = @task_queue and workflow_type = any(@types::text[])
      and exists (select from namespaces n where n.namespace = @namespace and n.enabled)
      and (requirements = '' or not exists (
          select from jsonb_each_text(requirements::jsonb) as r (key, value)
          where not exists (
              select from unnest(@offer_keys::text[], @offer_values::text[]) as o (key, value)
              where (o.key = r.key or right(o.key, 2) = ':*' and starts_with(r.key, left(o.key, -1)))
                and (r.value = '' or o.value = r.value))))
), known (diverged) as (
    (select diverged from runs
     where namespace = @namespace and task_queue = @task_queue and suspect_at is not null
     order by diverged
     limit 1)
    union all
    select (
        select r.diverged from runs r
        where r.namespace = @namespace and r.task_queue = @task_queue and r.suspect_at is not null and r.diverged > s.diverged
        order by r.diverged
        limit 1)
    from known s
    where s.diverged is not null
), heads as (
    select h.*, m.workflow_type, m.priority, false as apart, '' as suspect
    from matching m
    cross join lateral (
        select run_id, available_at, case when has_place then '' else concurrency_key end as concurrency_key, concurrency_limit from runs
        where lane_id = m.lane_id and available_at <= @now
        order by available_at, run_id
        limit @heads
    ) h
    union all
    (select r.run_id, r.suspect_at, case when r.has_place then '' else r.concurrency_key end, r.concurrency_limit, m.workflow_type, m.priority, true, r.suspect
     from known s
     join runs r on r.namespace = @namespace and r.task_queue = @task_queue and r.diverged = s.diverged
     join matching m on m.lane_id = r.lane_id
     where s.diverged is not null and strpos(s.diverged, @mark) = 0 and r.suspect_at <= @now
     order by r.suspect_at, r.run_id
     limit @apart)
)
select
    h.run_id, h.available_at, h.workflow_type, h.concurrency_key, h.concurrency_limit, case when h.concurrency_key = '' then 0 else (
        select count(*) from leases l
        where l.namespace = @namespace and l.workflow_type = h.workflow_type and l.concurrency_key = h.concurrency_key
          and l.concurrency_key <> ''
    ) + (
        select count(*) from runs r
        where r.namespace = @namespace and r.workflow_type = h.workflow_type and r.concurrency_key = h.concurrency_key and r.has_place and r.status <= 3) end,
    h.apart, h.suspect
from heads h
order by not h.apart, h.priority desc, h.available_at, h.run_id
