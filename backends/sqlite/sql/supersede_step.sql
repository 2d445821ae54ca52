-- Another attempt replaces this one; if it waited for its retry, it has failed. It keeps its token, which identifies a
-- repeated report. Always one row.
update steps set latest = 0, status = case when status = 1 then 4 else status end where step_id = @step_id
