-- Another attempt takes the place of this one; if it waited for its retry, it has now failed. Always one row.
update steps set latest = false, status = case when status = 1 then 4 else status end where step_id = @step_id
