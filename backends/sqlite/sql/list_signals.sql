-- A page of signals, one more than asked for; a page backwards is in reverse order. No row: none.
select run_id, sequence, name, signal_id, payload, payload_meta, received_at, step_name
from signals
where run_id = @run_id and sequence > @after and (@before = 0 or sequence < @before)
order by sequence asc
limit @limit
