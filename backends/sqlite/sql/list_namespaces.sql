-- A page of namespaces, by name, one more than asked for; the direction is turned for a page backwards. No row: nothing there.
select namespace, id, display_name, description, enabled, created_at, updated_at, retention_us, keep, failure_queue
from namespaces
where namespace > @after and (@before = '' or namespace < @before)
order by namespace asc
limit @limit
