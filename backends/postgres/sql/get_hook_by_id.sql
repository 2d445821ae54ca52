-- A hook by its id. No row: there is none.
select hook_id, namespace, name, task_queue, workflow_type, scheme, secret, old_secret, old_until, created_at, rotated_at
from hooks
where hook_id = @hook_id
