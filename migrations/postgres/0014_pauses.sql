-- Pauses that let the running step finish. pausing says that a worker still holds the run; paused_at is since when it is paused (null: it is not,
-- or an older version paused it). The deadline of a paused run does not run, so it does not expire.
alter table runs add column pausing boolean not null default false;
alter table runs alter column pausing set statistics 0; -- as nobody filters by it
alter table runs add column paused_at bigint;
alter table runs alter column paused_at set statistics 0; -- as nobody filters by it
update runs set expires_at = grace_until where expires_at is not null and finished_at is null and paused;

-- Whether the run of the lease is to be paused.
alter table leases add column pausing boolean not null default false;

-- Whether the worker lets the steps of such a run finish and then releases it.
alter table workers add column pauses_runs boolean not null default false;
