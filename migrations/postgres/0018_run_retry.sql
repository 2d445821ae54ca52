-- The retry policy of a run itself, apart from that of its steps; '' if retry_policy is for both. Nobody filters by it.
alter table runs
    add column run_retry_policy text collate "C" not null default '';
alter table runs
    alter column run_retry_policy set statistics 0;
alter table schedules
    add column run_retry_policy text collate "C" not null default ''; -- of its runs
