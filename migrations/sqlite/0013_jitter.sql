-- Jitter of schedules and the reason of a pause. The table is made again so that its input stays last, behind the columns that lists read.
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
    pause_reason        text not null default '', -- of the pause, for people
    jitter_us           integer not null default 0,
    delay_us            integer not null default 0, -- by jitter, how long after next_fire_at it fires
    input_meta          text not null default '',
    input               blob
) strict;
insert into new_schedules
select
    schedule_id, namespace, name, request_id, cron_expr, time_zone, enabled, task_queue, workflow_type, version, retry_policy, start_to_close_us,
    heartbeat_us, execution_us, on_failure_workflow, on_failure_queue, tags, max_catchup, overlap, created_at, updated_at, next_fire_at,
    last_fired_at, buffered, broken, fired, completed, failed, skipped, revision, '', 0, 0, input_meta, input
from schedules;
drop table schedules;
alter table new_schedules rename to schedules;
create index schedules_list on schedules (namespace, schedule_id);
create unique index schedules_name on schedules (namespace, name) where name <> '';
create unique index schedules_request on schedules (namespace, request_id) where request_id <> '';
create index schedules_due on schedules (next_fire_at + delay_us, schedule_id) where enabled = 1 and broken = '' and next_fire_at is not null;
