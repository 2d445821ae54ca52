-- The oldest signal of a name that nothing has consumed. No row: none waits. A name is named as both ends of a range, so that what is sorted by it
-- is in the index of those that wait, and not in the one of all by their sequence: statistics of a run that is sent everything see no difference.
select run_id, sequence, name, signal_id, received_at, step_name, payload, payload_meta
from signals
where run_id = @run_id and name >= @name and name <= @name and step_name = ''
order by name, sequence
limit 1
