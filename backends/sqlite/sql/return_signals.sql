-- Signals that these steps consumed wait again. No row changed: none of them consumed one.
update signals set step_name = '' where run_id = @run_id and step_name in (select value from json_each(@step_names)) and step_name <> ''
