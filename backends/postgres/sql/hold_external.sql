-- Keeps a run that has an external id from ending until the commit or, with never, from being deleted. No row: it has.
select run_id from runs where run_id = @run_id and (@never or status <= 3) for share
