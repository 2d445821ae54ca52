-- An attempt that another follows; one that waited for its retry has failed. It keeps its token, by which a repeated report is recognised. Always one row.
update steps set latest = 0, status = case when status = 1 then 4 else status end where step_id = @step_id
