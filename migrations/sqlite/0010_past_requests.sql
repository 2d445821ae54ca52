-- Requests outlive the runs that they were answered with: those of deleted runs are kept by themselves, without the input.
alter table requests add column made_at integer not null default 0; -- 0: made before this was kept

create table past_requests (
    namespace     text not null,
    request_id    text not null,
    run_id        blob not null, -- which is deleted
    made_at       integer not null,
    task_queue    text not null,
    workflow_type text not null, -- '': of a retry
    external_id   text not null,
    content       text not null, -- of a retry: the digest of what it asked for
    primary key (namespace, request_id)
) strict, without rowid;
create index past_requests_made on past_requests (made_at);
