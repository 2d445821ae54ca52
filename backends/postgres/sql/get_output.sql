-- To tell a repetition from another output. Always one row.
select output, output_meta from payloads where run_id = @run_id
