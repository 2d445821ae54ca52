-- Writes the output of a run. Always one row.
update payloads set output = @output, output_meta = @output_meta where run_id = @run_id
