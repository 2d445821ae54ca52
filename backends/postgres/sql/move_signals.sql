-- Moves unconsumed signals to another run. No row changed: none waits.
update signals set run_id = @to where run_id = @run_id and step_name = ''
