-- Of each lane the first that waits for a slot of the key, with one look into the index for each lane. No row: none waits.
with recursive gated (lane_id) as (
    select min(lane_id)
    from runs
    where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and gated = 1
    union all
    select (
        select min(r.lane_id)
        from runs r
        where r.namespace = @namespace and r.workflow_type = @workflow_type and r.concurrency_key = @concurrency_key and r.gated = 1
          and r.lane_id > gated.lane_id)
    from gated
    where gated.lane_id is not null
)
select (
    select r.run_id
    from runs r
    where r.namespace = @namespace and r.workflow_type = @workflow_type and r.concurrency_key = @concurrency_key and r.gated = 1
      and r.lane_id = gated.lane_id
    order by r.held_at, r.run_id
    limit 1)
from gated
where gated.lane_id is not null
