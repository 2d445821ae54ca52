-- What stands around a run: children, signals, schedules, deadlines, pauses, keys, repairs.

alter table namespaces add column retention_us bigint not null default 0;
alter table namespaces add column keep text collate "C" not null default ''; -- by status: microseconds
alter table namespaces add column failure_queue text collate "C" not null default '';

alter table runs add column scheduled_at bigint;
alter table runs add column note text collate "C" not null default '';
alter table runs add column paused boolean not null default false;
alter table runs add column gated boolean not null default false; -- waits for a slot of its concurrency key
alter table runs add column held_at bigint; -- what available_at would be, while paused or gated
alter table runs add column pinned boolean not null default false;
alter table runs add column cancel_requested_at bigint;
alter table runs add column cancel_reason text collate "C" not null default '';
alter table runs add column grace_until bigint;
alter table runs add column expires_at bigint; -- the earlier of deadline_at and grace_until
alter table runs add column parent_close smallint not null default 0;
alter table runs add column origin smallint not null default 0;
alter table runs add column failed_run_id uuid;
alter table runs add column retried_from uuid;
alter table runs add column continued_from uuid;
alter table runs add column continued_as uuid;
alter table runs add column tied boolean not null default false; -- its end concerns others: look closer

update runs set expires_at = deadline_at where deadline_at is not null;
update runs set tied = true where concurrency_key <> '' or parent_run_id is not null or schedule_id <> '';

drop index runs_external_active;
create unique index runs_external_active on runs (namespace, external_id) where external_id <> '' and status <= 3 and origin = 0;
drop index runs_ended;
create index runs_ended on runs (namespace, status, finished_at, run_id) where status > 3;
create index runs_expiry on runs (expires_at, run_id) where expires_at is not null and status <= 3;
create index runs_gate on runs (namespace, workflow_type, concurrency_key, lane_id, held_at, run_id) where gated;
create index runs_schedule_open on runs (schedule_id) where schedule_id <> '' and status <= 3;
create index runs_failed on runs (failed_run_id, run_id) where failed_run_id is not null;
create index runs_retried on runs (retried_from, run_id) where retried_from is not null;

alter table leases add column tied boolean not null default false; -- as its run's
alter table leases add column concurrency_key text collate "C" not null default '';
update leases set
    tied = (select r.tied from runs r where r.run_id = leases.run_id),
    concurrency_key = (select r.concurrency_key from runs r where r.run_id = leases.run_id);
create index leases_key on leases (namespace, workflow_type, concurrency_key) where concurrency_key <> '';

alter table steps add column signal_name text collate "C" not null default '';
alter table steps add column timed_out boolean not null default false;
alter table steps add column child_run_id uuid;
alter table steps add column awaited bigint not null default 0;
alter table steps add column overridden_by text collate "C" not null default '';
alter table steps add column override_reason text collate "C" not null default '';
create index steps_awaited on steps (run_id, awaited) where awaited <> 0;
create index steps_child on steps (child_run_id) where child_run_id is not null;

create table signals (
    run_id       uuid not null,
    sequence     bigint not null,
    name         text collate "C" not null,
    signal_id    text collate "C" not null default '',
    payload      bytea,
    payload_meta text collate "C" not null default '',
    received_at  bigint not null,
    step_name    text collate "C" not null default '', -- the step that consumed it
    primary key (run_id, sequence)
);
create unique index signals_id on signals (run_id, signal_id) where signal_id <> '';
create index signals_waiting on signals (run_id, name, sequence) where step_name = '';

create table schedules (
    schedule_id         uuid primary key,
    namespace           text collate "C" not null,
    name                text collate "C" not null default '',
    request_id          text collate "C" not null default '',
    cron_expr           text collate "C" not null,
    time_zone           text collate "C" not null default '',
    enabled             boolean not null,
    task_queue          text collate "C" not null,
    workflow_type       text collate "C" not null,
    version             text collate "C" not null default '',
    input               bytea,
    input_meta          text collate "C" not null default '',
    retry_policy        text collate "C" not null default '',
    start_to_close_us   bigint not null default 0,
    heartbeat_us        bigint not null default 0,
    execution_us        bigint not null default 0,
    on_failure_workflow text collate "C" not null default '',
    on_failure_queue    text collate "C" not null default '',
    tags                text collate "C" not null default '',
    max_catchup         integer not null,
    overlap             smallint not null default 0,
    created_at          bigint not null,
    updated_at          bigint not null,
    next_fire_at        bigint,
    last_fired_at       bigint,
    buffered            bigint,
    broken              text collate "C" not null default '',
    fired               bigint not null default 0,
    completed           bigint not null default 0,
    failed              bigint not null default 0,
    skipped             bigint not null default 0,
    revision            bigint not null default 1
);
create index schedules_list on schedules (namespace, schedule_id);
create unique index schedules_name on schedules (namespace, name) where name <> '';
create unique index schedules_request on schedules (namespace, request_id) where request_id <> '';
create index schedules_due on schedules (next_fire_at, schedule_id) where enabled and broken = '' and next_fire_at is not null;

-- One row for each tick that something was decided about with a run: a tick fires once.
create table fires (
    schedule_id uuid not null,
    tick        bigint not null,
    run_id      uuid not null,
    fired_at    bigint not null,
    primary key (schedule_id, tick)
);
create index fires_old on fires (fired_at);

create table audit (
    event_id   uuid primary key,
    at         bigint not null,
    actor      text collate "C" not null,
    peer       text collate "C" not null,
    method     text collate "C" not null,
    namespace  text collate "C" not null,
    subject    text collate "C" not null,
    subject_id text collate "C" not null,
    outcome    text collate "C" not null,
    reason     text collate "C" not null default '',
    detail     text collate "C" not null default ''
);
create index audit_list on audit (namespace, event_id);
create index audit_subject on audit (namespace, subject_id, event_id);
