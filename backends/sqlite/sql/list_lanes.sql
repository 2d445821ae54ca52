-- All lanes, for the writer's cache.
select lane_id, namespace, task_queue, workflow_type, requirements, priority from lanes order by lane_id
