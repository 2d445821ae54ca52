-- That a run is open is said by finished_at, which its end alone sets: a claim, which changes the status, leaves these indexes alone.

drop index runs_open;
create index runs_open on runs (namespace, run_id) where finished_at is null;
drop index runs_ended;
create index runs_ended on runs (namespace, status, finished_at, run_id) where finished_at is not null;
drop index runs_external_active;
create unique index runs_external_active on runs (namespace, external_id) where external_id <> '' and finished_at is null and origin = 0;
drop index runs_expiry;
create index runs_expiry on runs (expires_at, run_id) where expires_at is not null and finished_at is null;
drop index runs_schedule_open;
create index runs_schedule_open on runs (schedule_id) where schedule_id <> '' and finished_at is null;

-- The writer counts the leases of a queue and of a type by itself.
drop index leases_slot;
