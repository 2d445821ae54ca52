-- The oldest signal of a name that no step has consumed. No row: none waits. The name is given as both ends of a range,
-- so that only the index of waiting signals has the order of the sort, not the index of all signals by sequence. For a
-- run with very many signals, statistics do not show the difference.
select run_id, sequence, name, signal_id, received_at, step_name, payload, payload_meta
from signals
where run_id = @run_id and name >= @name and name <= @name and step_name = ''
order by name, sequence
limit 1
