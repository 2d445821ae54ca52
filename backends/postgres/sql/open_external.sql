-- The user's open run with the external id. The subquery is written as in insert_run. No row: the id is free.
select run_id from runs
where namespace = @namespace and external_id >= @external_id and external_id <= @external_id and external_id <> '' and status <= 3 and origin = 0
order by external_id limit 1
