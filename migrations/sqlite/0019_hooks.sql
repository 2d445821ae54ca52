-- Hooks, which start runs for deliveries over HTTP.
create table hooks (
    hook_id       blob primary key,
    namespace     text not null,
    name          text not null,
    task_queue    text not null,
    workflow_type text not null,
    scheme        integer not null,
    secret        text not null, -- readable: an HMAC can be checked only with the secret itself
    old_secret    text not null default '', -- valid until old_until; '' if the secret was never rotated
    old_until     integer,
    created_at    integer not null,
    rotated_at    integer
) strict, without rowid;
create unique index hooks_name on hooks (namespace, name);
create index hooks_namespace on hooks (namespace, hook_id);
