-- Requests outlive the runs that they were answered with: those of deleted runs are kept by themselves, without the input.
alter table requests add column made_at bigint not null default 0; -- 0: made before this was kept

create table past_requests (
    namespace     text collate "C" not null,
    request_id    text collate "C" not null,
    run_id        uuid not null, -- which is deleted
    made_at       bigint not null,
    task_queue    text collate "C" not null,
    workflow_type text collate "C" not null, -- '': of a retry
    external_id   text collate "C" not null,
    content       text collate "C" not null, -- of a retry: the digest of what it asked for
    primary key (namespace, request_id)
);
create index past_requests_made on past_requests (made_at);
