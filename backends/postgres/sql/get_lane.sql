-- No row: the lane does not exist.
select lane_id from lanes
where namespace = @namespace and task_queue = @task_queue and workflow_type = @workflow_type
  and requirements = @requirements and priority = @priority
