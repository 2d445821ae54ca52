-- Those of the runs that were retried as a run that is open. No row: none.
select retried_from from runs where retried_from = any(@run_ids::uuid[]) and retried_from is not null and status + 0 <= 3
