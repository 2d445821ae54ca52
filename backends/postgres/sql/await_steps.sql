-- Whether the code waits for these steps, and together with which. As many rows as there are ids.
update steps set awaited = @awaited where step_id = any(@step_ids)
