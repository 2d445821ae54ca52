-- A run's input and output. Always one row.
select input, input_meta, output, output_meta from payloads where run_id = @run_id
