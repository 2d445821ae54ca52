-- A page of namespaces, by name, one more than asked for; a page backwards is in reverse order. No row: none.
select namespace, id, display_name, description, enabled, created_at, updated_at, retention_us, keep, failure_queue
from namespaces
where namespace > @after and (@before = '' or namespace < @before)
order by namespace asc
limit @limit
