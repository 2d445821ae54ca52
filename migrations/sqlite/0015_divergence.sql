-- Builds of workers, and runs from whose history the code of a build has diverged. divergences holds the reports (''
-- : none), diverged the builds that made them, each between line breaks. While such a run waits, suspect_at takes the
-- place of available_at, as for a suspect. Its index has the builds in front, so that a claim looks only at runs that
-- its build may have.
alter table workers add column build_id text not null default '';
alter table runs add column divergences text not null default '';
alter table runs add column diverged text not null default '';
alter table runs add column unreached text not null default ''; -- names of recorded calls that the code had not made at its end
drop index runs_suspect;
create index runs_apart on runs (namespace, task_queue, diverged, suspect_at, run_id) where suspect_at is not null;
