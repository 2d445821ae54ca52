-- The steps by which a group of operations decides: by id; the latest attempts by name; those that started a child; for
-- runs that end, the step of the parent that started them, and the first open steps of that step's group; and, without
-- payloads, the steps of a run that are open or awaited. Each once. No row: none of them exists.
with started as materialized (
    select s.step_id, s.run_id, s.awaited
    from unnest(@ending::uuid[]) as e (run_id)
    cross join lateral (select parent_step_id from runs where run_id = e.run_id and parent_step_id is not null offset 0) r
    cross join lateral (select step_id, run_id, awaited from steps where step_id = r.parent_step_id offset 0) s
), wanted as materialized (
    select step_id, true as paid from unnest(@step_ids::uuid[]) as i (step_id)
    union all
    select s.step_id, true
    from unnest(@name_run_ids::uuid[], @names::text[]) as n (run_id, name)
    cross join lateral (select step_id from steps where run_id = n.run_id and name = n.name and latest offset 0) s
    union all
    select s.step_id, true
    from unnest(@children::uuid[]) as c (run_id)
    cross join lateral (select step_id from steps where child_run_id = c.run_id and child_run_id is not null and kind = 3 and latest offset 0) s
    union all
    select step_id, true from started
    union all
    select s.step_id, false
    from (select run_id, awaited, count(*) as ending from started where awaited > 1 group by run_id, awaited) g
    cross join lateral (
        select step_id from (select step_id, awaited from steps where run_id = g.run_id and status in (1, 2) offset 0) o
        where o.awaited = g.awaited
        order by step_id
        limit g.ending + 1
    ) s
    union all
    select s.step_id, false
    from unnest(@waiting::uuid[]) as r (run_id)
    cross join lateral (select step_id from steps where run_id = r.run_id and status in (1, 2) offset 0) s
    union all
    select s.step_id, false
    from unnest(@waiting::uuid[]) as r (run_id)
    cross join lateral (select step_id from steps where run_id = r.run_id and awaited <> 0 and status not in (1, 2) offset 0) s
), once as materialized (
    select step_id, bool_or(paid) as paid from wanted group by step_id
)
select
    w.paid,
    s.step_id, s.run_id, s.name, s.kind, s.status, s.attempt, s.failures, s.latest, s.sequence,
    case when w.paid then s.input end, case when w.paid then s.input_meta else '' end,
    case when w.paid then s.output end, case when w.paid then s.output_meta else '' end, s.error,
    s.token, s.worker_id, s.created_at, s.started_at, s.finished_at, s.timeout_at, s.retry_at, s.wake_at, s.duration_us, s.retry_policy,
    s.signal_name, s.timed_out, s.child_run_id, s.awaited, s.overridden_by, s.override_reason, s.settled, s.branch, s.begun_in
from once w
cross join lateral (select * from steps where step_id = w.step_id offset 0) s
