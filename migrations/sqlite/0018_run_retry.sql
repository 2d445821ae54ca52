-- The retry policy of a run itself, apart from that of its steps; '' if retry_policy is for both.
alter table runs add column run_retry_policy text not null default '';
alter table schedules add column run_retry_policy text not null default ''; -- of its runs
