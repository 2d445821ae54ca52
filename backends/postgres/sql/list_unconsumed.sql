-- The signals that no step has consumed. No row: none waits.
select run_id, sequence, name, signal_id, received_at, step_name, payload, payload_meta
from signals
where run_id = @run_id and step_name = ''
order by sequence
