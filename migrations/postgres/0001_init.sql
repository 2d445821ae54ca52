-- Times are microseconds since 1970, UTC. Ids and tokens are 16 bytes. Statuses and kinds are the numbers of the wire.
-- Maps, lists and policies are compact JSON; an empty string means none, so that the hot path parses nothing.
-- The tables that every run and step writes to have no foreign keys, which would cost a look-up each; `kagzi db check` holds
-- them to what keys would say.

create table namespaces (
    namespace    text collate "C" primary key,
    id           uuid not null,
    display_name text collate "C" not null default '',
    description  text collate "C" not null default '',
    enabled      boolean not null default true,
    created_at   bigint not null,
    updated_at   bigint not null
);

-- A lane is the runs that the same workers can take: one queue, type, set of requirements and priority. Due runs stand in
-- their lane in the order in which they are to be taken, so a claim looks at the head of a few lanes and at nothing else.
create table lanes (
    lane_id       bigint generated always as identity primary key,
    namespace     text collate "C" not null,
    task_queue    text collate "C" not null,
    workflow_type text collate "C" not null,
    requirements  text collate "C" not null, -- canonical JSON, keys sorted; '' for none
    priority      smallint not null,
    unique (namespace, task_queue, workflow_type, requirements, priority)
);

create table runs (
    run_id              uuid primary key,
    namespace           text collate "C" not null,
    external_id         text collate "C" not null default '',
    request_id          text collate "C" not null default '',
    lane_id             bigint not null,
    task_queue          text collate "C" not null,
    workflow_type       text collate "C" not null,
    version             text collate "C" not null default '',
    status              smallint not null,
    priority            smallint not null default 0,
    attempts            integer not null default 1,
    failures            integer not null default 0,
    lease_losses        integer not null default 0,
    steps               bigint not null default 0, -- as of the last lease; while RUNNING the lease has the newer count
    bytes               bigint not null default 0, -- likewise
    error               text collate "C" not null default '',
    created_at          bigint not null,
    available_at        bigint, -- only while PENDING or SLEEPING
    started_at          bigint,
    finished_at         bigint,
    deadline_at         bigint,
    worker_id           text collate "C" not null default '',
    waiting_for         text collate "C" not null default '',
    final_token         uuid, -- of the lease under which the run ended
    retry_policy        text collate "C" not null default '',
    start_to_close_us   bigint not null default 0,
    heartbeat_us        bigint not null default 0,
    execution_us        bigint not null default 0,
    tags                text collate "C" not null default '',
    requirements        text collate "C" not null default '',
    on_failure_workflow text collate "C" not null default '',
    on_failure_queue    text collate "C" not null default '',
    concurrency_key     text collate "C" not null default '',
    concurrency_limit   integer not null default 0,
    parent_run_id       uuid,
    parent_step_id      uuid,
    schedule_id         text collate "C" not null default '',
    traceparent         text collate "C" not null default ''
);

create index runs_claim on runs (lane_id, available_at, run_id) where status in (1, 3);
create index runs_list on runs (namespace, run_id);
create index runs_open on runs (namespace, run_id) where status <= 3;
create index runs_ended_badly on runs (namespace, status, run_id) where status > 4;
create index runs_ended on runs (finished_at, run_id) where status > 3;
create index runs_external on runs (namespace, external_id, run_id) where external_id <> '';
create unique index runs_external_active on runs (namespace, external_id) where external_id <> '' and status <= 3;
create unique index runs_request on runs (namespace, request_id) where request_id <> '';
create index runs_parent on runs (parent_run_id, run_id) where parent_run_id is not null;
create index runs_schedule on runs (schedule_id, run_id) where schedule_id <> '';

-- Apart from the runs, so that claims and lists read narrow rows.
create table payloads (
    run_id      uuid primary key,
    input       bytea,
    input_meta  text collate "C" not null default '',
    output      bytea,
    output_meta text collate "C" not null default ''
);

create table run_tags (
    namespace text collate "C" not null,
    key       text collate "C" not null,
    value     text collate "C" not null,
    run_id    uuid not null references runs (run_id),
    primary key (namespace, key, value, run_id)
);
create index run_tags_run on run_tags (run_id);

-- Starts that were answered with an earlier run, remembered for their request_id.
create table requests (
    namespace     text collate "C" not null,
    request_id    text collate "C" not null,
    run_id        uuid not null references runs (run_id),
    task_queue    text collate "C" not null,
    workflow_type text collate "C" not null,
    external_id   text collate "C" not null,
    input         bytea,
    input_meta    text collate "C" not null default '',
    primary key (namespace, request_id)
);
create index requests_run on requests (run_id);

-- One row for each RUNNING run. Narrow, because every step writes to it, and no index holds what a step changes.
create table leases (
    run_id        uuid primary key,
    token         uuid not null,
    worker_id     text collate "C" not null,
    namespace     text collate "C" not null,
    task_queue    text collate "C" not null,
    workflow_type text collate "C" not null,
    claimed_at    bigint not null,
    heartbeat_us  bigint not null default 0, -- the run's own heartbeat timeout
    steps         bigint not null,
    bytes         bigint not null,
    progressed    boolean not null default false  -- a step's result was recorded under this lease
);
create index leases_worker on leases (worker_id, run_id);
create index leases_slot on leases (namespace, task_queue, workflow_type);

-- What ended a lease without ending the run (FailRun with a retry, Release), remembered for repetitions.
create table receipts (
    token    uuid primary key,
    run_id   uuid not null references runs (run_id),
    verb     text collate "C" not null,
    content  text collate "C" not null default '',
    retry_at bigint
);
create index receipts_run on receipts (run_id);

-- One row for each attempt. Ids grow with time, so results are appended.
create table steps (
    step_id         uuid primary key,
    run_id          uuid not null,
    name            text collate "C" not null,
    kind            smallint not null,
    status          smallint not null,
    attempt         integer not null,
    failures        integer not null default 0,
    latest          boolean not null default true,
    sequence        bigint not null,
    input           bytea,
    input_meta      text collate "C" not null default '',
    output          bytea,
    output_meta     text collate "C" not null default '',
    error           text collate "C" not null default '',
    token           uuid not null,
    worker_id       text collate "C" not null,
    created_at      bigint not null,
    started_at      bigint,
    finished_at     bigint,
    timeout_at      bigint,
    retry_at        bigint,
    wake_at         bigint,
    duration_us     bigint not null default 0,
    retry_policy    text collate "C" not null default ''
);
create unique index steps_run on steps (run_id, name, attempt);
create index steps_open on steps (run_id) where status in (1, 2);
create index steps_timeout on steps (timeout_at) where status = 2 and timeout_at is not null;

create table workers (
    worker_id         text collate "C" primary key,
    namespace         text collate "C" not null,
    instance_id       text collate "C" not null default '',
    status            smallint not null,
    reason            smallint not null default 0,
    queues            text collate "C" not null,
    types             text collate "C" not null,
    labels            text collate "C" not null default '',
    capabilities      text collate "C" not null default '',
    hostname          text collate "C" not null default '',
    pid               integer not null default 0,
    version           text collate "C" not null default '',
    platform          text collate "C" not null default '',
    max_concurrent    integer not null,
    queue_limit       integer not null default 0,
    type_limits       text collate "C" not null default '',
    active            integer not null default 0,
    completed         bigint not null default 0,
    failed            bigint not null default 0,
    stats             text collate "C" not null default '',
    registered_at     bigint not null,
    last_heartbeat_at bigint not null,
    deregistered_at   bigint
);
create unique index workers_instance on workers (namespace, instance_id) where instance_id <> '';
create index workers_live on workers (namespace) where status <> 3;

-- Rows that are updated in place get room beside them, so that the update touches no index; what churns is vacuumed often.
alter table runs set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
alter table leases set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
alter table workers set (fillfactor = 50);
