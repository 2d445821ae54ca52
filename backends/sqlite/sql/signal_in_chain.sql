-- A run of the chain that has received a signal with that id. No row: none has.
select run_id
from signals
where signal_id = @signal_id and signal_id <> '' and run_id in (select run_id from runs where first_run_id = @first)
limit 1
