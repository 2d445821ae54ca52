-- Every run has this row, so that its output finds it.
insert into payloads (run_id, input, input_meta) values (@run_id, @input, @input_meta)
