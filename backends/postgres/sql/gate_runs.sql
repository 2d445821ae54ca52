-- Due runs leave their lane and wait for a slot of their key, except those that another transaction has locked. Rows
-- are these runs.
with locked as materialized (
    select run_id from runs
    where run_id = any(@run_ids::uuid[]) and status + 0 in (1, 3) and coalesce(available_at <= @now, false)
    for no key update skip locked
)
update runs r
set gated = true, held_at = r.available_at, available_at = null
from locked l
where r.run_id = l.run_id
returning r.run_id
