-- Writes the outputs of runs. Always one row for each.
update payloads t set output = s.output, output_meta = s.output_meta
from (
    select s.output, s.output_meta, h.at
    from unnest(@run_id::uuid[], @output::bytea[], @output_meta::text[]) as s (run_id, output, output_meta)
    cross join lateral (select ctid as at from payloads where run_id = s.run_id offset 0) h
) s
where t.ctid = s.at
