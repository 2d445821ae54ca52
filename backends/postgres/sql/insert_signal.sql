-- Stores signals. Always one row for each.
insert into signals (run_id, sequence, name, signal_id, payload, payload_meta, received_at, step_name)
select * from unnest(
    @run_id::uuid[], @sequence::bigint[], @name::text[], @signal_id::text[], @payload::bytea[], @payload_meta::text[], @received_at::bigint[],
    @step_name::text[]
)
