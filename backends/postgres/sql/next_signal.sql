-- The oldest signal of a name that nothing has consumed. No row: none waits.
select run_id, sequence, name, signal_id, received_at, step_name, payload, payload_meta
from signals
where run_id = @run_id and name = @name and step_name = ''
order by sequence
limit 1
