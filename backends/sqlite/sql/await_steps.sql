-- The code awaits these steps. As many rows as there are ids.
update steps set awaited = @awaited where step_id in (select unhex(value) from json_each(@step_ids))
