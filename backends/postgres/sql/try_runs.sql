-- Locks and reads runs that operations of a group concern beside their own, and the parents of runs that end. Runs that
-- another transaction has locked are skipped: this transaction holds other runs, so it must not wait. No row: all are
-- locked, or none exists.
with wanted as materialized (
    select unnest(@run_ids::uuid[]) as run_id
    union
    select r.parent_run_id
    from unnest(@ending::uuid[]) as e (run_id)
    cross join lateral (select parent_run_id from runs where run_id = e.run_id and parent_step_id is not null offset 0) r
    where r.parent_run_id is not null
)
select
    {r.run_columns},
    r.lease_losses, r.steps, r.bytes,
    r.lane_id, r.final_token, r.tied, r.settled
from wanted w
cross join lateral (select * from runs where run_id = w.run_id for no key update skip locked) r
