-- Times are microseconds since 1970, UTC. Ids and tokens are 16 bytes. Statuses and kinds are the numbers of the wire.
-- Maps, lists and policies are compact JSON; an empty string means none, so that the hot path parses nothing.
-- The tables that every run and step writes to have no foreign keys, which would cost a look-up each; `kagzi db check` holds
-- them to what keys would say.

create table namespaces (
    namespace    text primary key,
    id           blob not null,
    display_name text not null default '',
    description  text not null default '',
    enabled      integer not null default 1,
    created_at   integer not null,
    updated_at   integer not null
) strict, without rowid;

-- A lane is the runs that the same workers can take: one queue, type, set of requirements and priority. Due runs stand in
-- their lane in the order in which they are to be taken, so a claim looks at the head of a few lanes and at nothing else.
create table lanes (
    lane_id       integer primary key,
    namespace     text not null,
    task_queue    text not null,
    workflow_type text not null,
    requirements  text not null, -- canonical JSON, keys sorted; '' for none
    priority      integer not null,
    unique (namespace, task_queue, workflow_type, requirements, priority)
) strict;

create table runs (
    run_id              blob primary key,
    namespace           text not null,
    external_id         text not null default '',
    request_id          text not null default '',
    lane_id             integer not null,
    task_queue          text not null,
    workflow_type       text not null,
    version             text not null default '',
    status              integer not null,
    priority            integer not null default 0,
    attempts            integer not null default 1,
    failures            integer not null default 0,
    lease_losses        integer not null default 0,
    steps               integer not null default 0, -- as of the last lease; while RUNNING the lease has the newer count
    bytes               integer not null default 0, -- likewise
    error               text not null default '',
    created_at          integer not null,
    available_at        integer, -- only while PENDING or SLEEPING
    started_at          integer,
    finished_at         integer,
    deadline_at         integer,
    worker_id           text not null default '',
    waiting_for         text not null default '',
    final_token         blob, -- of the lease under which the run ended
    retry_policy        text not null default '',
    start_to_close_us   integer not null default 0,
    heartbeat_us        integer not null default 0,
    execution_us        integer not null default 0,
    tags                text not null default '',
    requirements        text not null default '',
    on_failure_workflow text not null default '',
    on_failure_queue    text not null default '',
    concurrency_key     text not null default '',
    concurrency_limit   integer not null default 0,
    parent_run_id       blob,
    parent_step_id      blob,
    schedule_id         text not null default '',
    traceparent         text not null default ''
) strict, without rowid;

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
    run_id      blob primary key,
    input       blob,
    input_meta  text not null default '',
    output      blob,
    output_meta text not null default ''
) strict, without rowid;

create table run_tags (
    namespace text not null,
    key       text not null,
    value     text not null,
    run_id    blob not null references runs (run_id),
    primary key (namespace, key, value, run_id)
) strict, without rowid;
create index run_tags_run on run_tags (run_id);

-- Starts that were answered with an earlier run, remembered for their request_id.
create table requests (
    namespace     text not null,
    request_id    text not null,
    run_id        blob not null references runs (run_id),
    task_queue    text not null,
    workflow_type text not null,
    external_id   text not null,
    input         blob,
    input_meta    text not null default '',
    primary key (namespace, request_id)
) strict, without rowid;
create index requests_run on requests (run_id);

-- One row for each RUNNING run. Narrow, because every step writes to it, and no index holds what a step changes.
create table leases (
    run_id        blob primary key,
    token         blob not null,
    worker_id     text not null,
    namespace     text not null,
    task_queue    text not null,
    workflow_type text not null,
    claimed_at    integer not null,
    heartbeat_us  integer not null default 0, -- the run's own heartbeat timeout
    steps         integer not null,
    bytes         integer not null,
    progressed    integer not null default 0  -- a step's result was recorded under this lease
) strict, without rowid;
create index leases_worker on leases (worker_id, run_id);
create index leases_slot on leases (namespace, task_queue, workflow_type);

-- What ended a lease without ending the run (FailRun with a retry, Release), remembered for repetitions.
create table receipts (
    token    blob primary key,
    run_id   blob not null references runs (run_id),
    verb     text not null,
    content  text not null default '',
    retry_at integer
) strict, without rowid;
create index receipts_run on receipts (run_id);

-- One row for each attempt. Ids grow with time, so results are appended.
create table steps (
    step_id         blob primary key,
    run_id          blob not null,
    name            text not null,
    kind            integer not null,
    status          integer not null,
    attempt         integer not null,
    failures        integer not null default 0,
    latest          integer not null default 1,
    sequence        integer not null,
    input           blob,
    input_meta      text not null default '',
    output          blob,
    output_meta     text not null default '',
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
    retry_policy    text not null default ''
) strict, without rowid;
create unique index steps_run on steps (run_id, name, attempt);
create index steps_open on steps (run_id) where status in (1, 2);
create index steps_timeout on steps (timeout_at) where status = 2 and timeout_at is not null;

create table workers (
    worker_id         text primary key,
    namespace         text not null,
    instance_id       text not null default '',
    status            integer not null,
    reason            integer not null default 0,
    queues            text not null,
    types             text not null,
    labels            text not null default '',
    capabilities      text not null default '',
    hostname          text not null default '',
    pid               integer not null default 0,
    version           text not null default '',
    platform          text not null default '',
    max_concurrent    integer not null,
    queue_limit       integer not null default 0,
    type_limits       text not null default '',
    active            integer not null default 0,
    completed         integer not null default 0,
    failed            integer not null default 0,
    stats             text not null default '',
    registered_at     integer not null,
    last_heartbeat_at integer not null,
    deregistered_at   integer
) strict, without rowid;
create unique index workers_instance on workers (namespace, instance_id) where instance_id <> '';
create index workers_live on workers (namespace) where status <> 3;
