-- Other servers claim at the same time. The heads of the lanes are chosen without locks. Then the workers are locked,
-- so that none is deregistered meanwhile, and then the runs, whose state is checked again; runs that another
-- transaction has locked are skipped. The first run that needs a place of its concurrency key, and the runs after it,
-- are left to gate.go; and so are all if some should rather go to the workers that keep them in memory.
-- If nothing is due, nothing is locked or written; nor if one of the workers is not ONLINE: the next claim is made
-- without its slots. The first seven columns describe what was found, in at least one row: among them the earliest time
-- of each lane, after the lane's id, and when the next run and the next run apart become due, if slots are left. The other
-- columns are a claimed run, null if none was; engine/lab/torture/commits.go counts on their number.
--
-- If a run is due that waits apart and that the build may have, nothing is claimed here: gate.go knows which suspects the
-- workers hold. Which builds have diverged is looked up in steps through the index, so that runs that the build may not
-- have cost nothing, however many wait.
--
-- In a lane with a floor nothing earlier is read. Claimed runs stay in the index until it is vacuumed, and a scan from
-- the start passes all of them each time.
--
-- As many runs as must be taken by age come first; the others follow by priority.
--
-- Only a run that waits for a worker has an available_at, so the condition names no status, and no worker's status in a
-- way that an index could use. Indexes of open rows are empty in quiet hours: then reading a whole index looks cheap,
-- and the plan stays while the index fills.
--
-- The last column says whether something may have happened to the run's steps while nobody held it: then they are
-- settled after the claim. They are looked up run by run, in an index whatever the statistics say, and not for a run
-- without steps.
--
-- The commit does not wait for the disk. If a crash loses the claim, no harm is done: the run is due as before, and the
-- token is refused. Nothing was recorded under the token, because any later write makes the claim durable too.
with recursive online as materialized (
    select worker_id from workers where worker_id = any(@workers::text[]) and status + 0 = 1
), matching as materialized (
    select lane_id, workflow_type, priority, coalesce((
        select f.floor from unnest(@floor_lanes::bigint[], @floors::bigint[]) as f (lane_id, floor) where f.lane_id = lanes.lane_id
    ), -9223372036854775807) as floor
    from lanes
    where namespace = @namespace and task_queue = @task_queue and workflow_type = any(@types::text[])
      and exists (select from namespaces n where n.namespace = @namespace and n.enabled)
      and (requirements = '' or not exists (
          select from jsonb_each_text(requirements::jsonb) as r (key, value)
          where not exists (
              select from unnest(@offer_keys::text[], @offer_values::text[]) as o (key, value)
              where (o.key = r.key or right(o.key, 2) = ':*' and starts_with(r.key, left(o.key, -1)))
                and (r.value = '' or o.value = r.value))))
), known (diverged) as (
    (select diverged from runs
     where namespace = @namespace and task_queue = @task_queue and suspect_at is not null
     order by diverged
     limit 1)
    union all
    select (
        select r.diverged from runs r
        where r.namespace = @namespace and r.task_queue = @task_queue and r.suspect_at is not null and r.diverged > s.diverged
        order by r.diverged
        limit 1)
    from known s
    where s.diverged is not null
), builds as materialized (
    select diverged from known where diverged is not null and strpos(diverged, @mark) = 0
), apart as materialized (
    select exists (
        select from builds b
        cross join lateral (
            select from runs r
            where r.namespace = @namespace and r.task_queue = @task_queue and r.diverged = b.diverged
              and r.suspect_at <= @now and r.workflow_type = any(@types::text[])
            limit 1
        ) f
    ) as due
), due as materialized (
    select m.lane_id, m.workflow_type, m.priority, h.run_id, h.available_at, h.keyed
    from matching m
    cross join lateral (
        select run_id, available_at, concurrency_key <> '' and not has_place as keyed from runs
        where lane_id = m.lane_id and available_at >= m.floor and available_at <= @now
        order by available_at, run_id
        limit @heads
    ) h
), type_slots as materialized (
    select t.workflow_type, t.most - (
        select count(*) from leases l
        where l.namespace = @namespace and l.task_queue = @task_queue and l.workflow_type = t.workflow_type) as free_slots
    from unnest(@limited_types::text[], @type_limits::bigint[]) as t (workflow_type, most)
), aged as materialized (
    select d.run_id, row_number() over (order by d.available_at, d.run_id) as age
    from (select *, row_number() over (partition by workflow_type order by available_at, run_id) as place_in_type from due) d
    left join type_slots t on t.workflow_type = d.workflow_type
    where t.free_slots is null or d.place_in_type <= t.free_slots
    order by age
    limit @by_age
), ranked as (
    select d.*, a.age,
           row_number() over (partition by workflow_type order by a.age, priority desc, available_at, d.run_id) as place_in_type
    from due d
    left join aged a on a.run_id = d.run_id
), candidates as materialized (
    select r.run_id, r.keyed, row_number() over (order by r.age, r.priority desc, r.available_at, r.run_id) as place
    from ranked r
    left join type_slots t on t.workflow_type = r.workflow_type
    where t.free_slots is null or r.place_in_type <= t.free_slots
    order by place
    limit least(cardinality(@tokens::uuid[]), case when @queue_limit > 0 then greatest(0, @queue_limit - (
        select count(*) from leases l where l.namespace = @namespace and l.task_queue = @task_queue)) end)
), free as materialized (
    select run_id, place from candidates
    where place < coalesce((select min(place) from candidates where keyed), 9223372036854775807) and not (select a.due from apart a)
      and not @prefer
), working as materialized (
    select worker_id from workers
    where worker_id = any(@workers::text[]) and status + 0 = 1 and (select count(*) from free) > 0
    order by worker_id
    for key share
), locked as materialized (
    select r.run_id, c.place
    from free c
    join runs r on r.run_id = c.run_id
    where (select count(*) from working) = cardinality(@workers::text[]) and r.status + 0 in (1, 3) and coalesce(r.available_at <= @now, false)
    order by c.place
    for no key update of r skip locked
), taken as materialized (
    select run_id, (@slot_workers::text[])[place] as worker_id, (@tokens::uuid[])[place] as token, place
    from (select run_id, row_number() over (order by place) as place from locked) l
), claimed as (
    update runs r
    set status = 2, available_at = null, waiting_for = '', worker_id = t.worker_id, started_at = coalesce(r.started_at, @now)
    from taken t
    where r.run_id = t.run_id
    returning r.*, t.token, t.place
), leased as (
    insert into leases (
        run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, heartbeat_us, steps, bytes, tied, concurrency_key, pausing,
        settled, owed_from)
    select
        run_id, token, worker_id, namespace, task_queue, workflow_type, @now, heartbeat_us, steps, bytes, tied,
        case when concurrency_scope = 0 then concurrency_key else '' end, pausing,
        settled, owed_from
    from claimed
)
select
    array(select worker_id from online), (select count(*) from due), (select count(*) from candidates),
    exists (select from candidates where keyed or @prefer) or (select a.due from apart a), array(select unnest(array[lane_id, min(available_at)]) from due group by lane_id),
    case when cardinality(@tokens::uuid[]) > (select count(*) from taken) then (
        select min(h.available_at)
        from matching m
        cross join lateral (
            select available_at from runs
            where lane_id = m.lane_id and available_at > @now
            order by available_at
            limit 1
        ) h) end,
    case when cardinality(@tokens::uuid[]) > (select count(*) from taken) then (
        select min(f.suspect_at)
        from builds b
        cross join lateral (
            select r.suspect_at
            from runs r
            join matching m on m.lane_id = r.lane_id
            where r.namespace = @namespace and r.task_queue = @task_queue and r.diverged = b.diverged and r.suspect_at > @now
            order by r.suspect_at
            limit 1
        ) f) end,
    r.token,
    {r.run_columns},
    r.lease_losses, r.steps, r.bytes,
    p.input, p.input_meta,
    case when r.steps > 0 then
        (select s.step_id from steps s where s.run_id = r.run_id and s.awaited <> 0 limit 1) is not null
        or (select s.step_id from steps s
            where s.run_id = r.run_id and s.status in (1, 2) and s.status = 2 and s.kind = 2 and s.wake_at <= @now limit 1) is not null
        else false end
from (select set_config('synchronous_commit', 'off', true)) one
left join claimed r on true
left join payloads p on p.run_id = r.run_id
order by r.place
