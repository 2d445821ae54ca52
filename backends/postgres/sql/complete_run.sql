-- The common end of runs, which are locked with their leases. No row if the fast path does not apply: a stale token, a
-- run whose end affects other rows, open steps, an output that is too large, or a result in the same group that was not
-- recorded.
--
-- Leases are looked up one by one, and deleted by ctid, even if the planner knew of few. Subqueries instead of "exists"
-- make the planner use an index for steps; it never hashes all open steps.
with results as (
    select * from unnest(
        @run_ids::uuid[], @tokens::uuid[], @namespaces::text[], @outputs::bytea[], @output_metas::text[], @sizes::bigint[], @now::bigint[], @behind::uuid[]
    ) as s (run_id, token, namespace, output, output_meta, size, now, behind)
), ending as materialized (
    select h.at, r.run_id, r.token, r.output, r.output_meta, r.now, h.task_queue, h.namespace, h.worker_id, h.steps, h.bytes + r.size as bytes, h.settled, h.progressed
    from results r
    cross join lateral (select ctid as at, * from leases where run_id = r.run_id offset 0) h
    where h.token = r.token and r.namespace in ('', h.namespace) and not h.tied and not h.suspect and h.bytes + r.size <= @max_bytes::bigint
      and (h.steps = 0 or (select s.step_id from steps s where s.run_id = r.run_id and s.status in (1, 2) limit 1) is null)
      and (r.behind = '00000000-0000-0000-0000-000000000000'
          or (select s.step_id from steps s where s.step_id = r.behind and s.xmin = pg_current_xact_id()::xid) is not null)
), paid as (
    update payloads p set output = e.output, output_meta = e.output_meta
    from ending e where p.run_id = e.run_id and (e.output is not null or e.output_meta <> '')
), freed as (
    delete from leases l using ending e where l.ctid = e.at
)
update runs r
set status = 4, finished_at = e.now, steps = e.steps, bytes = e.bytes, settled = e.settled, final_token = e.token,
    lease_losses = case when e.progressed then 0 else r.lease_losses end
from ending e where r.run_id = e.run_id
returning r.run_id, r.namespace, r.task_queue
