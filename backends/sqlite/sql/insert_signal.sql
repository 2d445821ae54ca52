-- Stores a signal. Always one row.
insert into signals (run_id, sequence, name, signal_id, payload, payload_meta, received_at, step_name)
values (@run_id, @sequence, @name, @signal_id, @payload, @payload_meta, @received_at, @step_name)
