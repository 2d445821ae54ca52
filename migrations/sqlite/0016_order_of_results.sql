-- The order in which results reached the code of a run, and what its code has to reach.
--
-- runs.settled counts the results that have a place in this order; while RUNNING the lease has the newer count. owed_from grows when what is
-- recorded need not be reached any more. unread_signals is of an ended run.
alter table runs add column settled integer not null default 0;
alter table runs add column owed_from integer not null default 0;
alter table runs add column unread_signals integer not null default 0;
alter table leases add column settled integer not null default 0;
alter table leases add column owed_from integer not null default 0; -- as its run's

-- settled is the place of a step's result; 0 without one, and for results from before this; -1 until a worker is told, and then awaited is not 0,
-- so that the index of awaited steps finds it. These columns stand behind the payloads: they are read with them, or of the few open steps.
alter table steps add column settled integer not null default 0;
alter table steps add column branch text not null default '';
alter table steps add column begun_in integer not null default -1; -- the run's owed_from when the attempt began; -1 for those from before this, which code never has to reach
