-- The user's open run with the external id. No row: the id is free.
select run_id
from runs
where namespace = @namespace and external_id = @external_id and external_id <> '' and finished_at is null and origin = 0
