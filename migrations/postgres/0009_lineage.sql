-- What a run has from the runs before it: whether a failure handler is among its ancestors, which has no global handler below it, and the first
-- run of the chain that it continues (null when it is the first itself), by which that one's handles find it.
alter table runs add column below_handler boolean not null default false;
alter table runs alter column below_handler set statistics 0; -- as nobody filters by it
alter table runs add column first_run_id uuid;
create index runs_first on runs (first_run_id) where first_run_id is not null;
