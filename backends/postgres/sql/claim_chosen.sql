-- Claims the chosen runs, in order, for slots of workers that are locked; it skips runs that another transaction has
-- locked. Rows are the claimed runs. Their steps are woken as in claim.sql.
with locked as materialized (
    select r.run_id, c.place
    from unnest(@run_ids::uuid[]) with ordinality as c (run_id, place)
    join runs r on r.run_id = c.run_id
    where r.status + 0 in (1, 3) and coalesce(r.available_at <= @now, false)
    order by c.place
    for no key update of r skip locked
), taken as materialized (
    select run_id, (@workers::text[])[place] as worker_id, (@tokens::uuid[])[place] as token, place
    from (select run_id, row_number() over (order by place) as place from locked) l
    where place <= cardinality(@tokens::uuid[])
), claimed as (
    update runs r
    set status = 2, available_at = null, waiting_for = '', worker_id = t.worker_id, started_at = coalesce(r.started_at, @now)
    from taken t
    where r.run_id = t.run_id
    returning r.*, t.token, t.place
), leased as (
    insert into leases (
        run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, heartbeat_us, steps, bytes, tied, concurrency_key)
    select run_id, token, worker_id, namespace, task_queue, workflow_type, @now, heartbeat_us, steps, bytes, tied, concurrency_key from claimed
), waiting as materialized (
    select w.step_id, w.elapsed
    from claimed c
    cross join lateral (
        (select step_id, true as elapsed from steps s
         where s.run_id = c.run_id and s.status in (1, 2) and s.status = 2 and s.kind in (2, 100) and s.wake_at <= @now
         offset 0)
        union all
        (select step_id, false from steps s
         where s.run_id = c.run_id and s.awaited <> 0
           and not (s.status = 2 and s.kind in (2, 100) and coalesce(s.wake_at <= @now, false))
         offset 0)
    ) w
    where c.steps > 0
), woken as (
    update steps s
    set status = case when w.elapsed then 3 else s.status end,
        finished_at = case when w.elapsed then s.wake_at else s.finished_at end,
        timed_out = case when w.elapsed then s.kind = 100 else s.timed_out end,
        awaited = 0
    from waiting w
    where s.step_id = w.step_id
      and case when w.elapsed then s.status = 2 and s.kind in (2, 100) and s.wake_at <= @now else s.awaited <> 0 end
)
select
    r.token,
    {r.run_columns},
    r.lease_losses, r.steps, r.bytes,
    p.input, p.input_meta
from claimed r
join payloads p on p.run_id = r.run_id
order by r.place
