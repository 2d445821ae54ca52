-- The oldest signal of a name that no step has consumed. No row: none waits.
select run_id, sequence, name, signal_id, payload, payload_meta, received_at, step_name
from signals indexed by signals_waiting -- does not scan consumed signals
where run_id = @run_id and name = @name and step_name = ''
order by sequence
limit 1
