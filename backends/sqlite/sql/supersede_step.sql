-- An attempt that another follows. It keeps its token, by which a repeated report is recognised. Always one row.
update steps set latest = 0, status = 4 where step_id = @step_id
