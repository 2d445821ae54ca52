-- What stands around a run: children, signals, schedules, deadlines, pauses, keys, repairs.

alter table namespaces add column retention_us integer not null default 0;
alter table namespaces add column keep text not null default ''; -- by status: microseconds
alter table namespaces add column failure_queue text not null default '';

alter table runs add column scheduled_at integer;
alter table runs add column note text not null default '';
alter table runs add column paused integer not null default 0;
alter table runs add column gated integer not null default 0; -- waits for a slot of its concurrency key
alter table runs add column held_at integer; -- what available_at would be, while paused or gated
alter table runs add column pinned integer not null default 0;
alter table runs add column cancel_requested_at integer;
alter table runs add column cancel_reason text not null default '';
alter table runs add column grace_until integer;
alter table runs add column expires_at integer; -- the earlier of deadline_at and grace_until
alter table runs add column parent_close integer not null default 0;
alter table runs add column origin integer not null default 0;
alter table runs add column failed_run_id blob;
alter table runs add column retried_from blob;
alter table runs add column continued_from blob;
alter table runs add column continued_as blob;
alter table runs add column tied integer not null default 0; -- its end concerns others: look closer

update runs set expires_at = deadline_at where deadline_at is not null;
update runs set tied = 1 where concurrency_key <> '' or parent_run_id is not null or schedule_id <> '';

drop index runs_external_active;
create unique index runs_external_active on runs (namespace, external_id) where external_id <> '' and status <= 3 and origin = 0;
drop index runs_ended;
create index runs_ended on runs (namespace, status, finished_at, run_id) where status > 3;
create index runs_expiry on runs (expires_at, run_id) where expires_at is not null and status <= 3;
create index runs_gate on runs (namespace, workflow_type, concurrency_key, lane_id, held_at, run_id) where gated = 1;
create index runs_schedule_open on runs (schedule_id) where schedule_id <> '' and status <= 3;
create index runs_failed on runs (failed_run_id, run_id) where failed_run_id is not null;
create index runs_retried on runs (retried_from, run_id) where retried_from is not null;

alter table leases add column tied integer not null default 0; -- as its run's
alter table leases add column concurrency_key text not null default '';
update leases set
    tied = (select r.tied from runs r where r.run_id = leases.run_id),
    concurrency_key = (select r.concurrency_key from runs r where r.run_id = leases.run_id);
create index leases_key on leases (namespace, workflow_type, concurrency_key) where concurrency_key <> '';

alter table steps add column signal_name text not null default '';
alter table steps add column timed_out integer not null default 0;
alter table steps add column child_run_id blob;
alter table steps add column awaited integer not null default 0;
alter table steps add column overridden_by text not null default '';
alter table steps add column override_reason text not null default '';
create index steps_awaited on steps (run_id, awaited) where awaited <> 0;
create index steps_child on steps (child_run_id) where child_run_id is not null;

create table signals (
    run_id       blob not null,
    sequence     integer not null,
    name         text not null,
    signal_id    text not null default '',
    payload      blob,
    payload_meta text not null default '',
    received_at  integer not null,
    step_name    text not null default '', -- the step that consumed it
    primary key (run_id, sequence)
) strict, without rowid;
create unique index signals_id on signals (run_id, signal_id) where signal_id <> '';
create index signals_waiting on signals (run_id, name, sequence) where step_name = '';

create table schedules (
    schedule_id         blob primary key,
    namespace           text not null,
    name                text not null default '',
    request_id          text not null default '',
    cron_expr           text not null,
    time_zone           text not null default '',
    enabled             integer not null,
    task_queue          text not null,
    workflow_type       text not null,
    version             text not null default '',
    input               blob,
    input_meta          text not null default '',
    retry_policy        text not null default '',
    start_to_close_us   integer not null default 0,
    heartbeat_us        integer not null default 0,
    execution_us        integer not null default 0,
    on_failure_workflow text not null default '',
    on_failure_queue    text not null default '',
    tags                text not null default '',
    max_catchup         integer not null,
    overlap             integer not null default 0,
    created_at          integer not null,
    updated_at          integer not null,
    next_fire_at        integer,
    last_fired_at       integer,
    buffered            integer,
    broken              text not null default '',
    fired               integer not null default 0,
    completed           integer not null default 0,
    failed              integer not null default 0,
    skipped             integer not null default 0,
    revision            integer not null default 1
) strict, without rowid;
create index schedules_list on schedules (namespace, schedule_id);
create unique index schedules_name on schedules (namespace, name) where name <> '';
create unique index schedules_request on schedules (namespace, request_id) where request_id <> '';
create index schedules_due on schedules (next_fire_at, schedule_id) where enabled = 1 and broken = '' and next_fire_at is not null;

-- One row for each tick that something was decided about with a run: a tick fires once.
create table fires (
    schedule_id blob not null,
    tick        integer not null,
    run_id      blob not null,
    fired_at    integer not null,
    primary key (schedule_id, tick)
) strict, without rowid;
create index fires_old on fires (fired_at);

create table audit (
    event_id   blob primary key,
    at         integer not null,
    actor      text not null,
    peer       text not null,
    method     text not null,
    namespace  text not null,
    subject    text not null,
    subject_id text not null,
    outcome    text not null,
    reason     text not null default '',
    detail     text not null default ''
) strict, without rowid;
create index audit_list on audit (namespace, event_id);
create index audit_subject on audit (namespace, subject_id, event_id);
