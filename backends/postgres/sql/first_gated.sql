-- For each lane and limit the first run that waits for a place of the key, if the limit is not reached. One index lookup
-- finds the next lane or limit. No row: none.
with recursive heads as (
    (select r.lane_id, r.concurrency_limit, r.run_id from runs r
     where r.gated and r.namespace = @namespace and r.workflow_type = @workflow_type and r.concurrency_key = @concurrency_key
     order by r.lane_id, r.concurrency_limit, r.held_at, r.run_id
     limit 1)
    union all
    select n.lane_id, n.concurrency_limit, n.run_id from heads h
    cross join lateral (
        select r.lane_id, r.concurrency_limit, r.run_id from runs r
        where r.gated and r.namespace = @namespace and r.workflow_type = @workflow_type and r.concurrency_key = @concurrency_key
          and (r.lane_id, r.concurrency_limit) > (h.lane_id, h.concurrency_limit)
        order by r.lane_id, r.concurrency_limit, r.held_at, r.run_id
        limit 1
    ) n
)
select run_id from heads
where greatest(concurrency_limit, 1) > (
    select count(*) from leases
    where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and concurrency_key <> ''
) + (
    select count(*) from runs
    where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and has_place and status <= 3)
