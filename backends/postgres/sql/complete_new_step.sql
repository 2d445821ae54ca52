-- Records the results of steps that nobody has begun, under current leases, which are locked: one insert each, and one narrow update of
-- each lease. Of a run all results or none. No row for what needs a closer look: a stale token, a step that has an attempt, a limit that would
-- be passed.
--
-- Leases are looked up one by one, and changed where they were found, however few there were when this was planned.
with results as (
    select s.*, row_number() over of_run as place_in_run, count(*) over (partition by s.run_id) as of_run, sum(s.size) over (partition by s.run_id) as size_of_run
    from unnest(
        @run_ids::uuid[], @tokens::uuid[], @namespaces::text[], @step_ids::uuid[], @names::text[],
        @outputs::bytea[], @output_metas::text[], @sizes::bigint[], @started_at::bigint[], @now::bigint[]
    ) with ordinality as s (run_id, token, namespace, step_id, name, output, output_meta, size, started_at, now, place)
    window of_run as (partition by s.run_id order by s.place)
), fresh as (
    select r.*, h.at, h.worker_id, h.steps + r.place_in_run as sequence, h.steps + r.of_run as steps_after, h.bytes + r.size_of_run::bigint as bytes_after,
           count(*) over (partition by r.run_id) = r.of_run as whole
    from results r
    cross join lateral (select ctid as at, * from leases where run_id = r.run_id offset 0) h
    where h.token = r.token and r.namespace in ('', h.namespace)
      and not exists (select from steps s where s.run_id = r.run_id and s.name = r.name)
), fitting as materialized (
    select * from fresh where whole and steps_after <= @max_steps::bigint and bytes_after <= @max_bytes::bigint
), counted as (
    update leases l set steps = f.steps_after, bytes = f.bytes_after, progressed = true
    from (select distinct at, steps_after, bytes_after from fitting) f where l.ctid = f.at
)
insert into steps (step_id, run_id, name, kind, status, attempt, sequence, output, output_meta, token, worker_id,
                   created_at, started_at, finished_at)
select step_id, run_id, name, 1, 3, 1, sequence, output, output_meta, token, worker_id, now, started_at, now
from fitting order by place
returning step_id, sequence, worker_id
