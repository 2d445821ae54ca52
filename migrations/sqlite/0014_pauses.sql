-- Pauses that let the running step finish. pausing says that a worker still holds the run; paused_at is since when it is paused (null: it is not,
-- or an older version paused it). The deadline of a paused run does not run, so it does not expire.
alter table runs add column pausing integer not null default 0;
alter table runs add column paused_at integer;
update runs set expires_at = grace_until where expires_at is not null and finished_at is null and paused = 1;

-- Whether the run of the lease is to be paused.
alter table leases add column pausing integer not null default 0;

-- Whether the worker lets the steps of such a run finish and then releases it.
alter table workers add column pauses_runs integer not null default 0;
