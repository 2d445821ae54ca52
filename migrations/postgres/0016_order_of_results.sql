-- The order in which results reached the code of a run, and what its code has to reach.
--
-- runs.settled counts the results that have a place in this order; while RUNNING the lease has the newer count. owed_from grows when what is
-- recorded need not be reached any more. unread_signals is of an ended run. Nobody filters by any of these.
alter table runs
    add column settled bigint not null default 0,
    add column owed_from bigint not null default 0,
    add column unread_signals integer not null default 0;
alter table runs
    alter column settled set statistics 0,
    alter column owed_from set statistics 0,
    alter column unread_signals set statistics 0;
alter table leases
    add column settled bigint not null default 0,
    add column owed_from bigint not null default 0; -- as its run's

-- settled is the place of a step's result; 0 without one, and for results from before this; -1 until a worker is told, and then awaited is not 0,
-- so that the index of awaited steps finds it.
alter table steps
    add column settled bigint not null default 0,
    add column branch text collate "C" not null default '',
    add column begun_in bigint not null default -1; -- the run's owed_from when the attempt began; -1 for those from before this, which code never has to reach
alter table steps
    alter column settled set statistics 0,
    alter column branch set statistics 0,
    alter column begun_in set statistics 0;
