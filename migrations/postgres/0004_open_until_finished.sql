-- In SQLite a claim leaves the indexes of open runs alone from here on. Here it cannot: it changes available_at, which is in an index, so the
-- row's new version enters every index whatever that says of the status.

-- What nobody filters by is not analyzed: a third of what analyzing a table of runs costs, which comes again and again while it grows and
-- falls into the busiest hours.
alter table runs
    alter column version set statistics 0,
    alter column attempts set statistics 0,
    alter column failures set statistics 0,
    alter column lease_losses set statistics 0,
    alter column steps set statistics 0,
    alter column bytes set statistics 0,
    alter column error set statistics 0,
    alter column started_at set statistics 0,
    alter column deadline_at set statistics 0,
    alter column waiting_for set statistics 0,
    alter column final_token set statistics 0,
    alter column retry_policy set statistics 0,
    alter column start_to_close_us set statistics 0,
    alter column heartbeat_us set statistics 0,
    alter column execution_us set statistics 0,
    alter column tags set statistics 0,
    alter column requirements set statistics 0,
    alter column on_failure_workflow set statistics 0,
    alter column on_failure_queue set statistics 0,
    alter column concurrency_limit set statistics 0,
    alter column parent_step_id set statistics 0,
    alter column traceparent set statistics 0,
    alter column scheduled_at set statistics 0,
    alter column note set statistics 0,
    alter column held_at set statistics 0,
    alter column cancel_requested_at set statistics 0,
    alter column cancel_reason set statistics 0,
    alter column parent_close set statistics 0;
alter table payloads
    alter column input set statistics 0,
    alter column input_meta set statistics 0,
    alter column output set statistics 0,
    alter column output_meta set statistics 0;
alter table steps
    alter column failures set statistics 0,
    alter column input set statistics 0,
    alter column input_meta set statistics 0,
    alter column output set statistics 0,
    alter column output_meta set statistics 0,
    alter column error set statistics 0,
    alter column token set statistics 0,
    alter column worker_id set statistics 0,
    alter column created_at set statistics 0,
    alter column started_at set statistics 0,
    alter column finished_at set statistics 0,
    alter column duration_us set statistics 0,
    alter column retry_policy set statistics 0,
    alter column override_reason set statistics 0;
