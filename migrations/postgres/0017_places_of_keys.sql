-- A concurrency key may count a run from its first claim to its end. Schedules give their runs a key.
--
-- concurrency_scope is 0 if each lease takes a place of the key, 1 if the run takes one: has_place says that it has. The end changes the status, so
-- no end forgets a place. A lease has a key only in scope 0.
alter table runs
    add column concurrency_scope smallint not null default 0,
    add column has_place boolean not null default false;
alter table runs
    alter column concurrency_scope set statistics 0;
create index runs_places on runs (namespace, workflow_type, concurrency_key, run_id) where has_place and status <= 3;

alter table schedules
    add column concurrency_key text collate "C" not null default '',
    add column concurrency_limit integer not null default 0,
    add column concurrency_scope smallint not null default 0;
