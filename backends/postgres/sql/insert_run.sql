-- Makes the runs of whole calls. Unless @looked_at, it leaves out a call if one of its starts has a known request, an
-- external id in use or a disabled namespace; the starts of that call are then made one by one. Subqueries instead of
-- "exists" make the planner use an index; it never hashes a whole index. They ask for a range of one id, in order,
-- because only the index of these ids has that order. With an equality the planner may choose another index of the
-- namespace while the table is small, and keep that plan while it grows. Rows are the runs made. If another transaction
-- takes an id at the same moment, this is a unique violation. A lane that does not exist, for example because a
-- failover lost it, is a not-null violation.
--
-- A run with a scope is claimed at once for the slot that comes with it, if its worker is ONLINE and nothing else is
-- due in the scope: a queue and types, with any requirements. A worker whose row is locked is about to become OFFLINE,
-- and is not waited for. If one of the workers is not ONLINE or is locked, no run is claimed, because a run claimed for
-- another worker might belong after the one that this worker would have got.
with starts as (
    select * from unnest(
        @calls::int[], @run_ids::uuid[], @namespaces::text[], @external_ids::text[], @request_ids::text[], @never::bool[], @lane_ids::bigint[],
        @task_queues::text[], @workflow_types::text[], @versions::text[], @priorities::int[], @bytes::bigint[],
        @created_at::bigint[], @available_at::bigint[], @deadline_at::bigint[], @retry_policies::text[],
        @start_to_close_us::bigint[], @heartbeat_us::bigint[], @execution_us::bigint[], @tags::text[], @requirements::text[],
        @on_failure_workflows::text[], @on_failure_queues::text[], @concurrency_keys::text[], @concurrency_limits::int[],
        @parent_run_ids::uuid[], @parent_step_ids::uuid[], @parent_closes::int[], @traceparents::text[], @inputs::bytea[], @input_metas::text[],
        @scheduled_at::bigint[], @origins::int[], @schedule_ids::text[], @failed_run_ids::uuid[], @retried_from::uuid[], @continued_from::uuid[],
        @named_deadline_at::bigint[], @below_handler::bool[], @first_run_ids::uuid[], @concurrency_scopes::int[], @has_place::bool[], @run_retry_policies::text[], @tied::bool[], @worker_ids::text[], @tokens::uuid[], @scopes::int[]
    ) as s (
        call, run_id, namespace, external_id, request_id, never, lane_id,
        task_queue, workflow_type, version, priority, bytes,
        created_at, available_at, deadline_at, retry_policy,
        start_to_close_us, heartbeat_us, execution_us, tags, requirements,
        on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit,
        parent_run_id, parent_step_id, parent_close, traceparent, input, input_meta,
        scheduled_at, origin, schedule_id, failed_run_id, retried_from, continued_from,
        named_deadline_at, below_handler, first_run_id, concurrency_scope, has_place, run_retry_policy, tied, worker_id, token, scope
    )
), blocked as materialized (
    select s.call from starts s
    where not @looked_at::bool and (
        (select n.enabled from namespaces n where n.namespace = s.namespace) is not true
        or s.request_id <> '' and (
            (select r.run_id from runs r
             where r.namespace = s.namespace and r.request_id >= s.request_id and r.request_id <= s.request_id and r.request_id <> ''
             order by r.request_id limit 1) is not null
            or (select q.run_id from requests q where q.namespace = s.namespace and q.request_id = s.request_id) is not null
            or (select q.run_id from past_requests q where q.namespace = s.namespace and q.request_id = s.request_id) is not null)
        or s.external_id <> '' and s.origin = 0 and (
            select r.run_id from runs r
            where r.namespace = s.namespace and r.external_id >= s.external_id and r.external_id <= s.external_id and r.external_id <> ''
              and r.origin = 0 and (s.never or r.status <= 3)
            order by r.external_id limit 1) is not null)
), online as materialized (
    select worker_id from workers where worker_id = any(@slot_workers::text[]) and status + 0 = 1 order by worker_id for key share skip locked
), overtaken as materialized (
    select m.scope
    from unnest(@scope_ids::int[], @scope_namespaces::text[], @scope_queues::text[], @scope_types::text[]) as m (scope, namespace, task_queue, workflow_type)
    cross join lateral (
        select lane_id from lanes
        where namespace = m.namespace and task_queue = m.task_queue and workflow_type = m.workflow_type
        offset 0
    ) l
    where (select r.run_id from runs r
           where r.lane_id = l.lane_id and r.available_at <= @claimed_at
           order by r.available_at limit 1) is not null
), fresh as materialized (
    select s.*, s.scope > 0 and (select count(*) from online) = cardinality(@slot_workers::text[])
                and not exists (select from overtaken p where p.scope = s.scope) as taken
    from starts s where not exists (select from blocked h where h.call = s.call)
), leased as (
    insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, heartbeat_us, steps, bytes, tied)
    select run_id, token, worker_id, namespace, task_queue, workflow_type, @claimed_at, heartbeat_us, 0, bytes, tied from fresh where taken
), inserted_payloads as (
    insert into payloads (run_id, input, input_meta) select run_id, input, input_meta from fresh
), inserted_tags as (
    insert into run_tags (namespace, key, value, run_id)
    select f.namespace, t.key, t.value, t.run_id
    from unnest(@tag_run_ids::uuid[], @tag_keys::text[], @tag_values::text[]) as t (run_id, key, value)
    join fresh f on f.run_id = t.run_id
)
insert into runs (
    run_id, namespace, external_id, request_id, lane_id, task_queue, workflow_type, version, status, priority, bytes,
    created_at, available_at, deadline_at, expires_at, retry_policy, start_to_close_us, heartbeat_us, execution_us, tags, requirements,
    on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit, parent_run_id, parent_step_id, parent_close, traceparent,
    scheduled_at, origin, schedule_id, failed_run_id, retried_from, continued_from, named_deadline_at, below_handler, first_run_id,
    concurrency_scope, has_place, run_retry_policy, tied, worker_id, started_at
)
select run_id, namespace, external_id, request_id, (select l.lane_id from lanes l where l.lane_id = f.lane_id),
       task_queue, workflow_type, version, case when taken then 2 else 1 end, priority, bytes,
       created_at, case when not taken then available_at end, nullif(deadline_at, 0), nullif(deadline_at, 0), retry_policy,
       start_to_close_us, heartbeat_us, execution_us, tags, requirements,
       on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit,
       nullif(parent_run_id, '00000000-0000-0000-0000-000000000000'), nullif(parent_step_id, '00000000-0000-0000-0000-000000000000'), parent_close, traceparent,
       nullif(scheduled_at, 0), origin, schedule_id, nullif(failed_run_id, '00000000-0000-0000-0000-000000000000'), nullif(retried_from, '00000000-0000-0000-0000-000000000000'), nullif(continued_from, '00000000-0000-0000-0000-000000000000'),
       nullif(named_deadline_at, 0), below_handler, nullif(first_run_id, '00000000-0000-0000-0000-000000000000'), concurrency_scope, has_place, run_retry_policy, tied,
       case when taken then worker_id else '' end, case when taken then @claimed_at end
from fresh f
returning run_id, status = 2
