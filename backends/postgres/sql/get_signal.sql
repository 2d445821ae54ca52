-- A signal by its sender's id. No row: the run has received none with that id.
select run_id, sequence, name, signal_id, received_at, step_name, payload, payload_meta
from signals
where run_id = @run_id and signal_id = @signal_id and signal_id <> ''
