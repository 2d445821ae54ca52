-- A page of the hooks of a namespace, newest first, one more than asked for; a page backwards is in reverse order. No
-- row: none.
select hook_id, namespace, name, task_queue, workflow_type, scheme, secret, old_secret, old_until, created_at, rotated_at
from hooks
where namespace = @namespace and hook_id > @above and hook_id < @below
order by hook_id desc
limit @limit
