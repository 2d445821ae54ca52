-- The head of each lane's line of a key: one look into the index finds the next lane, and one its first run. No row: nobody waits.
with recursive heads as (
    (select r.lane_id, r.run_id from runs r
     where r.gated and r.namespace = @namespace and r.workflow_type = @workflow_type and r.concurrency_key = @concurrency_key
     order by r.lane_id, r.held_at, r.run_id
     limit 1)
    union all
    select n.lane_id, n.run_id from heads h
    cross join lateral (
        select r.lane_id, r.run_id from runs r
        where r.gated and r.namespace = @namespace and r.workflow_type = @workflow_type and r.concurrency_key = @concurrency_key
          and r.lane_id > h.lane_id
        order by r.lane_id, r.held_at, r.run_id
        limit 1
    ) n
)
select run_id from heads
