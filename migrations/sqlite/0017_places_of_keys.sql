-- A concurrency key may count a run from its first claim to its end. Schedules give their runs a key.
--
-- concurrency_scope is 0 if each lease takes a place of the key, 1 if the run takes one: has_place says that it has. The end sets finished_at, so
-- no end forgets a place. A lease has a key only in scope 0.
alter table runs add column concurrency_scope integer not null default 0;
alter table runs add column has_place integer not null default 0;
create index runs_places on runs (namespace, workflow_type, concurrency_key, run_id, has_place, finished_at) where has_place = 1 and finished_at is null;

alter table schedules add column concurrency_key text not null default '';
alter table schedules add column concurrency_limit integer not null default 0;
alter table schedules add column concurrency_scope integer not null default 0;
