-- The columns of runs that make an engine.Run, in the order in which run_row.go reads them. lease_losses, steps and
-- bytes are left out, because a lease has the newer values; they follow in each statement. A statement writes
-- {r.run_columns} for this list.
run_id, namespace, external_id, request_id, task_queue, workflow_type, version, status, priority, attempts, failures, error,
created_at, available_at, started_at, finished_at, deadline_at, scheduled_at, worker_id, waiting_for, note,
paused, gated, held_at, pinned, cancel_requested_at, cancel_reason, grace_until, retry_policy,
start_to_close_us, heartbeat_us, execution_us, tags, requirements, on_failure_workflow, on_failure_queue,
concurrency_key, concurrency_limit, parent_run_id, parent_step_id, parent_close, traceparent,
origin, schedule_id, failed_run_id, retried_from, continued_from, continued_as, named_deadline_at,
below_handler, first_run_id, suspect, suspect_at, pausing, paused_at,
divergences, diverged, unreached, owed_from, unread_signals, concurrency_scope, has_place,
run_retry_policy
