-- The hook of a namespace with a name. No row: there is none.
select hook_id, namespace, name, task_queue, workflow_type, scheme, secret, old_secret, old_until, created_at, rotated_at
from hooks
where namespace = @namespace and name = @name
