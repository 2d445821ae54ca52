-- The output of a run that has one. Always one row.
update payloads set output = @output, output_meta = @output_meta where run_id = @run_id
