-- What a run shares with others: its namespace; the slots of its queue and of its type in the queue, the places of
-- its concurrency key that are taken; and the runs before it. Always one row.
select
    (select n.enabled from namespaces n where n.namespace = r.namespace),
    (select count(*) from leases l where l.namespace = r.namespace and l.task_queue = r.task_queue),
    (select count(*)
     from leases l
     where l.namespace = r.namespace and l.task_queue = r.task_queue and l.workflow_type = r.workflow_type),
    (select count(*)
     from leases l
     where l.namespace = r.namespace and l.workflow_type = r.workflow_type and l.concurrency_key = r.concurrency_key
       and l.concurrency_key <> '')
    + (select count(*)
       from runs o
       where o.namespace = r.namespace and o.workflow_type = r.workflow_type and o.concurrency_key = r.concurrency_key
         and o.has_place = 1 and o.finished_at is null),
    (select count(*)
     from runs o
     where o.namespace = r.namespace and o.workflow_type = r.workflow_type and o.concurrency_key = r.concurrency_key
       and o.gated = 1 and r.gated = 1
       and (-o.priority, o.held_at, o.run_id) < (-r.priority, r.held_at, r.run_id))
from runs r
where r.run_id = @run_id
