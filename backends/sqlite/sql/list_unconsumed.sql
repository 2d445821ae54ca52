-- The signals that no step has consumed. No row: none waits.
select run_id, sequence, name, signal_id, payload, payload_meta, received_at, step_name
from signals
where run_id = @run_id and step_name = ''
order by sequence
