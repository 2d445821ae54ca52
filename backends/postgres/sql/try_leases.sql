-- The leases of the runs of try_runs, locked, and whether another transaction has locked one. No row: none is held.
with wanted as materialized (
    select unnest(@run_ids::uuid[]) as run_id
    union
    select r.parent_run_id
    from unnest(@ending::uuid[]) as e (run_id)
    cross join lateral (select parent_run_id from runs where run_id = e.run_id and parent_step_id is not null offset 0) r
    where r.parent_run_id is not null
), held as materialized (
    select l.run_id from wanted w cross join lateral (select run_id from leases where run_id = w.run_id offset 0) l
)
select h.run_id, l.run_id is null, l.token, l.worker_id, l.claimed_at, l.steps, l.bytes, l.settled, l.progressed
from held h
left join lateral (select * from leases where run_id = h.run_id for update skip locked) l on true
