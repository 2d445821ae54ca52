-- Claims the chosen runs, each for the slot in its place, of a worker that is locked; it skips runs that another
-- transaction has locked. Rows are the claimed runs. The last column is that of
-- claim.sql.
with locked as materialized (
    select r.run_id, c.place
    from unnest(@run_ids::uuid[]) with ordinality as c (run_id, place)
    join runs r on r.run_id = c.run_id
    where r.status + 0 in (1, 3) and coalesce(coalesce(r.available_at, r.suspect_at) <= @now, false)
    order by c.place
    for no key update of r skip locked
), taken as materialized (
    select run_id, (@workers::text[])[place] as worker_id, (@tokens::uuid[])[place] as token, place
    from locked
), claimed as (
    update runs r
    set status = 2, available_at = null, suspect_at = null, waiting_for = '', worker_id = t.worker_id, started_at = coalesce(r.started_at, @now),
        has_place = r.has_place or r.concurrency_scope = 1
    from taken t
    where r.run_id = t.run_id
    returning r.*, t.token, t.place
), leased as (
    insert into leases (
        run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, heartbeat_us, steps, bytes, tied, concurrency_key, suspect, pausing,
        settled, owed_from)
    select
        run_id, token, worker_id, namespace, task_queue, workflow_type, @now, heartbeat_us, steps, bytes, tied,
        case when concurrency_scope = 0 then concurrency_key else '' end, suspect <> '' or diverged <> '', pausing,
        settled, owed_from
    from claimed
)
select
    r.token,
    {r.run_columns},
    r.lease_losses, r.steps, r.bytes,
    p.input, p.input_meta,
    case when r.steps > 0 then
        (select s.step_id from steps s where s.run_id = r.run_id and s.awaited <> 0 limit 1) is not null
        or (select s.step_id from steps s
            where s.run_id = r.run_id and s.status in (1, 2) and s.status = 2 and s.kind = 2 and s.wake_at <= @now limit 1) is not null
        else false end
from claimed r
join payloads p on p.run_id = r.run_id
order by r.place
