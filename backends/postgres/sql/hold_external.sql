-- Keeps a run with an external id from ending until the commit or, with @never, from being deleted. No row: it has
-- ended or was deleted.
select run_id from runs where run_id = @run_id and (@never or status <= 3) for share
