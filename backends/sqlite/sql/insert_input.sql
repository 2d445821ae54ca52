-- Every run has this row; its output is added later.
insert into payloads (run_id, input, input_meta) values (@run_id, @input, @input_meta)
