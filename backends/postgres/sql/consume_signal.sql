-- Marks signals as consumed by steps. Always one row for each.
update signals t set step_name = s.step_name
from (
    select s.step_name, h.at
    from unnest(@run_id::uuid[], @sequence::bigint[], @step_name::text[]) as s (run_id, sequence, step_name)
    cross join lateral (select ctid as at from signals where run_id = s.run_id and sequence = s.sequence offset 0) h
) s
where t.ctid = s.at
