-- The signal that a run has had under an id of its sender's. No row: it is new.
select run_id, sequence, name, signal_id, received_at, step_name, payload, payload_meta
from signals
where run_id = @run_id and signal_id = @signal_id and signal_id <> ''
