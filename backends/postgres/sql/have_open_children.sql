-- Those of some runs that have open children that end with them. No row: none has.
select p.run_id
from unnest(@run_ids::uuid[]) as p (run_id)
cross join lateral (
    select run_id from runs where parent_run_id = p.run_id and status + 0 <= 3 and parent_close > 1 limit 1
) c
