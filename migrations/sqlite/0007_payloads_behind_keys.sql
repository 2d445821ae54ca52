-- Rows that hold payloads are found by numbers of SQLite's own, their keys are in an index beside them, and the payloads stand last. As a table
-- without such numbers is its own index, SQLite read whole payloads to compare the keys before them, several for each row that it wrote or looked
-- for, and the more the larger the table was; and what stood behind a payload was found by going through it.

create table new_payloads (
    run_id      blob primary key,
    input_meta  text not null default '',
    output_meta text not null default '',
    input       blob,
    output      blob
) strict;
insert into new_payloads select run_id, input_meta, output_meta, input, output from payloads;
drop table payloads;
alter table new_payloads rename to payloads;

create table new_requests (
    namespace     text not null,
    request_id    text not null,
    run_id        blob not null references runs (run_id),
    task_queue    text not null,
    workflow_type text not null,
    external_id   text not null,
    input_meta    text not null default '',
    input         blob,
    primary key (namespace, request_id)
) strict;
insert into new_requests
select namespace, request_id, run_id, task_queue, workflow_type, external_id, input_meta, input
from requests;
drop table requests;
alter table new_requests rename to requests;
create index requests_run on requests (run_id);

create table new_steps (
    step_id         blob primary key,
    run_id          blob not null,
    name            text not null,
    kind            integer not null,
    status          integer not null,
    attempt         integer not null,
    failures        integer not null default 0,
    latest          integer not null default 1,
    sequence        integer not null,
    error           text not null default '',
    token           blob not null,
    worker_id       text not null,
    created_at      integer not null,
    started_at      integer,
    finished_at     integer,
    timeout_at      integer,
    retry_at        integer,
    wake_at         integer,
    duration_us     integer not null default 0,
    retry_policy    text not null default '',
    signal_name     text not null default '',
    timed_out       integer not null default 0,
    child_run_id    blob,
    awaited         integer not null default 0,
    overridden_by   text not null default '',
    override_reason text not null default '',
    input_meta      text not null default '',
    output_meta     text not null default '',
    input           blob,
    output          blob
) strict;
insert into new_steps
select
    step_id, run_id, name, kind, status, attempt, failures, latest, sequence, error, token, worker_id, created_at, started_at, finished_at,
    timeout_at, retry_at, wake_at, duration_us, retry_policy, signal_name, timed_out, child_run_id, awaited, overridden_by, override_reason,
    input_meta, output_meta, input, output
from steps;
drop table steps;
alter table new_steps rename to steps;
create unique index steps_run on steps (run_id, name, attempt);
create index steps_open on steps (run_id, step_id) where status in (1, 2);
create index steps_timeout on steps (timeout_at, step_id) where status = 2 and timeout_at is not null;
create index steps_awaited on steps (run_id, awaited) where awaited <> 0;
create index steps_child on steps (child_run_id) where child_run_id is not null;

create table new_signals (
    run_id       blob not null,
    sequence     integer not null,
    name         text not null,
    signal_id    text not null default '',
    received_at  integer not null,
    step_name    text not null default '', -- the step that consumed it
    payload_meta text not null default '',
    payload      blob,
    primary key (run_id, sequence)
) strict;
insert into new_signals
select run_id, sequence, name, signal_id, received_at, step_name, payload_meta, payload
from signals;
drop table signals;
alter table new_signals rename to signals;
create unique index signals_id on signals (run_id, signal_id) where signal_id <> '';
create index signals_waiting on signals (run_id, name, sequence) where step_name = '';

create table new_schedules (
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
    revision            integer not null default 1,
    input_meta          text not null default '',
    input               blob
) strict;
insert into new_schedules
select
    schedule_id, namespace, name, request_id, cron_expr, time_zone, enabled, task_queue, workflow_type, version, retry_policy, start_to_close_us,
    heartbeat_us, execution_us, on_failure_workflow, on_failure_queue, tags, max_catchup, overlap, created_at, updated_at, next_fire_at,
    last_fired_at, buffered, broken, fired, completed, failed, skipped, revision, input_meta, input
from schedules;
drop table schedules;
alter table new_schedules rename to schedules;
create index schedules_list on schedules (namespace, schedule_id);
create unique index schedules_name on schedules (namespace, name) where name <> '';
create unique index schedules_request on schedules (namespace, request_id) where request_id <> '';
create index schedules_due on schedules (next_fire_at, schedule_id) where enabled = 1 and broken = '' and next_fire_at is not null;

alter table runs add column named_deadline_at integer; -- the deadline that the starter named, beside execution_us
