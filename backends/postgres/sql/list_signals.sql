-- A page of signals, one more than asked for; a page backwards is in reverse order. No row: none.
select run_id, sequence, name, signal_id, received_at, step_name, payload, payload_meta
from signals
where run_id = @run_id and sequence > @after::bigint and (@before::bigint = 0 or sequence < @before::bigint)
order by sequence asc
limit @limit
