-- Records the results of steps that were not begun, under current leases: one insert each, and one narrow update of
-- each lease. Of each run it records all results or none. No row if the fast path does not apply: a stale token, a step
-- with an attempt, a limit that would be passed, a lease that changed meanwhile. Each result comes with its run's
-- totals up to it: sequence, bytes, and whether it is the last.
--
-- Leases are looked up one by one, and updated by ctid, even if the planner knew of few. They are not locked before: if
-- another transaction was faster, a count has changed (a child that ended changes only the bytes, and one that is told only settled). Then the update does
-- not find the lease with the expected counts, and nothing of its run is inserted. The counts are compared because some
-- versions of Postgres do not check a ctid again after waiting for the row.
with results as materialized (
    select s.*, h.at, h.worker_id, h.steps as steps_before, h.bytes as bytes_before, h.steps + s.place as sequence, h.bytes + s.size as bytes_after,
           h.settled as settled_before, h.settled + s.place as settled, h.owed_from,
           h.token = s.token and not h.suspect and not h.pausing and s.namespace in ('', h.namespace) and h.steps + s.place <= @max_steps::bigint and h.bytes + s.size <= @max_bytes::bigint
           and (select e.step_id from steps e where e.run_id = s.run_id and e.name = s.name limit 1) is null as fits
    from unnest(
        @run_ids::uuid[], @tokens::uuid[], @namespaces::text[], @step_ids::uuid[], @names::text[], @outputs::bytea[], @output_metas::text[],
        @places::bigint[], @sizes::bigint[], @lasts::bool[], @started_at::bigint[], @now::bigint[],
        @branches::text[]
    ) as s (run_id, token, namespace, step_id, name, output, output_meta, place, size, last, started_at, now, branch)
    cross join lateral (select ctid as at, * from leases where run_id = s.run_id offset 0) h
), fitting as materialized (
    select * from results where run_id not in (select run_id from results where not fits)
), counted as (
    update leases l set steps = f.sequence, bytes = f.bytes_after, settled = f.settled, progressed = true
    from fitting f where f.last and l.ctid = f.at and l.token = f.token and l.steps = f.steps_before and l.bytes = f.bytes_before
      and l.settled = f.settled_before
    returning l.run_id
)
insert into steps (step_id, run_id, name, kind, status, attempt, sequence, output, output_meta, token, worker_id,
                   created_at, started_at, finished_at, settled, branch, begun_in)
select step_id, run_id, name, 1, 3, 1, sequence, output, output_meta, token, worker_id, now, started_at, now, settled, branch, owed_from
from fitting where (run_id in (select run_id from counted)) is true
returning step_id, sequence, worker_id, settled, begun_in
