-- Jitter of schedules and the reason of a pause. delay_us: by jitter, how long after next_fire_at the schedule fires.
alter table schedules add column pause_reason text collate "C" not null default '';
alter table schedules add column jitter_us bigint not null default 0;
alter table schedules add column delay_us bigint not null default 0;
drop index schedules_due;
create index schedules_due on schedules ((next_fire_at + delay_us), schedule_id) where enabled and broken = '' and next_fire_at is not null;
