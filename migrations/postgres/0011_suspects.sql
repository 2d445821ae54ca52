-- Runs that may have killed their worker. suspect says of which loss the run is a suspect ('': it is none). While such a run waits, suspect_at
-- takes the place of available_at, so that claims pass it over and look for suspects apart: where there are none they look into an empty index.
alter table runs add column suspect text collate "C" not null default '';
alter table runs alter column suspect set statistics 0; -- as nobody filters by it
alter table runs add column suspect_at bigint;
create index runs_suspect on runs (namespace, task_queue, suspect_at, run_id) where suspect_at is not null;

-- Whether the run of the lease is a suspect.
alter table leases add column suspect boolean not null default false;

-- How many runs the worker held when it was lost, and how many of these were suspects.
alter table workers add column lost_runs integer not null default 0;
alter table workers add column lost_suspects integer not null default 0;
