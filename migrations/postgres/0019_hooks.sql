-- Hooks, which start runs for deliveries over HTTP.
create table hooks (
    hook_id       uuid primary key,
    namespace     text collate "C" not null,
    name          text collate "C" not null,
    task_queue    text collate "C" not null,
    workflow_type text collate "C" not null,
    scheme        smallint not null,
    secret        text collate "C" not null, -- readable: an HMAC can be checked only with the secret itself
    old_secret    text collate "C" not null default '', -- valid until old_until; '' if the secret was never rotated
    old_until     bigint,
    created_at    bigint not null,
    rotated_at    bigint
);
create unique index hooks_name on hooks (namespace, name);
create index hooks_namespace on hooks (namespace, hook_id);
