-- A page of types, by name, one more than asked for; a page backwards is in reverse order. No row: none.
select r.workflow_type, count(*), sum(r.status <= 3), json_group_array(distinct r.task_queue)
from runs r
where r.namespace = @namespace and (@after = '' or r.workflow_type > @after) and (@before = '' or r.workflow_type < @before)
group by r.workflow_type
order by r.workflow_type asc
limit @limit
