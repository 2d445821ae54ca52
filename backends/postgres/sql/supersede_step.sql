-- Another attempt replaces this one; if it waited for its retry, it has failed. Always one row.
update steps set latest = false, status = case when status = 1 then 4 else status end where step_id = @step_id
