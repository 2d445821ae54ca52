-- Makes the runs of whole calls: a call of which one start meets a known request or a taken external id is left out, for a
-- closer look. Rows are the runs made. A rival who took an id at the same moment makes it a unique violation.
with starts as (
    select * from unnest(
        @calls::int[], @run_ids::uuid[], @namespaces::text[], @external_ids::text[], @request_ids::text[], @never::bool[], @lane_ids::bigint[],
        @task_queues::text[], @workflow_types::text[], @versions::text[], @priorities::int[], @bytes::bigint[],
        @created_at::bigint[], @available_at::bigint[], @deadline_at::bigint[], @retry_policies::text[],
        @start_to_close_us::bigint[], @heartbeat_us::bigint[], @execution_us::bigint[], @tags::text[], @requirements::text[],
        @on_failure_workflows::text[], @on_failure_queues::text[], @concurrency_keys::text[], @concurrency_limits::int[],
        @parent_run_ids::uuid[], @parent_step_ids::uuid[], @traceparents::text[], @inputs::bytea[], @input_metas::text[]
    ) as s (
        call, run_id, namespace, external_id, request_id, never, lane_id,
        task_queue, workflow_type, version, priority, bytes,
        created_at, available_at, deadline_at, retry_policy,
        start_to_close_us, heartbeat_us, execution_us, tags, requirements,
        on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit,
        parent_run_id, parent_step_id, traceparent, input, input_meta
    )
), hindered as materialized (
    select s.call from starts s
    where s.request_id <> '' and (
            exists (select from runs r where r.namespace = s.namespace and r.request_id = s.request_id and r.request_id <> '')
            or exists (select from requests q where q.namespace = s.namespace and q.request_id = s.request_id))
        or s.external_id <> '' and (
            exists (select from runs r where r.namespace = s.namespace and r.external_id = s.external_id and r.external_id <> '' and r.status <= 3)
            or s.never and exists (select from runs r where r.namespace = s.namespace and r.external_id = s.external_id and r.external_id <> ''))
), fresh as materialized (
    select * from starts s where not exists (select from hindered h where h.call = s.call)
), paid as (
    insert into payloads (run_id, input, input_meta) select run_id, input, input_meta from fresh
), tagged as (
    insert into run_tags (namespace, key, value, run_id)
    select f.namespace, t.key, t.value, t.run_id
    from unnest(@tag_run_ids::uuid[], @tag_keys::text[], @tag_values::text[]) as t (run_id, key, value)
    join fresh f on f.run_id = t.run_id
)
insert into runs (
    run_id, namespace, external_id, request_id, lane_id, task_queue, workflow_type, version, status, priority, bytes,
    created_at, available_at, deadline_at, retry_policy, start_to_close_us, heartbeat_us, execution_us, tags, requirements,
    on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit, parent_run_id, parent_step_id, traceparent
)
select run_id, namespace, external_id, request_id, lane_id, task_queue, workflow_type, version, 1, priority, bytes,
       created_at, available_at, nullif(deadline_at, 0), retry_policy, start_to_close_us, heartbeat_us, execution_us, tags, requirements,
       on_failure_workflow, on_failure_queue, concurrency_key, concurrency_limit,
       nullif(parent_run_id, '00000000-0000-0000-0000-000000000000'), nullif(parent_step_id, '00000000-0000-0000-0000-000000000000'), traceparent
from fresh
returning run_id
