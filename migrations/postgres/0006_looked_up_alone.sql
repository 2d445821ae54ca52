-- In a quiet hour no lease is held, and by the statistics any index of leases is as good as another for as long as that plan stays. One that has
-- the run as well, behind the worker, was passed whole for each step then, with all that churned in it.
--
-- Likewise for a schedule's open runs an index of all that is open: without a word about the status it will not do.

drop index leases_worker;
create index leases_worker on leases (worker_id);
drop index runs_schedule_open;
create index runs_schedule_open on runs (schedule_id) where schedule_id <> '' and (finished_at is null or status <= 3);
