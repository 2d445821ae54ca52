-- Sets whether the code awaits these steps, and in which group. As many rows as there are ids.
update steps set awaited = @awaited where step_id = any(@step_ids)
