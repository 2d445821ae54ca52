-- A namespace. No row: nothing has used it.
select namespace, id, display_name, description, enabled, created_at, updated_at, retention_us, keep, failure_queue
from namespaces
where namespace = @namespace
