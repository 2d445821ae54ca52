-- For each lane and limit the first run that waits for a place of the key, if the limit is not reached. One index lookup
-- finds the next lane or limit. No row: none.
with recursive gated (run_id) as (
    select (
        select run_id
        from runs
        where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and gated = 1
        order by lane_id, concurrency_limit, held_at, run_id
        limit 1)
    union all
    select (
        select r.run_id
        from runs h
        cross join runs r
        where h.run_id = gated.run_id
          and r.namespace = @namespace and r.workflow_type = @workflow_type and r.concurrency_key = @concurrency_key and r.gated = 1
          -- the plus removes the column affinity, which would keep both from being index bounds
          and (r.lane_id, r.concurrency_limit) > (+h.lane_id, +h.concurrency_limit)
        order by r.lane_id, r.concurrency_limit, r.held_at, r.run_id
        limit 1)
    from gated
    where gated.run_id is not null
)
select r.run_id
from gated
join runs r on r.run_id = gated.run_id
where max(r.concurrency_limit, 1) > (
    select count(*)
    from leases
    where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and concurrency_key <> ''
) + (
    select count(*)
    from runs
    where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and has_place = 1 and finished_at is null)
