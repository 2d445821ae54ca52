-- A run's input and output. No row: there is no such run.
select input, input_meta, output, output_meta from payloads where run_id = @run_id
