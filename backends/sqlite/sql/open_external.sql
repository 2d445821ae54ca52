-- The open run of a user that holds the external id. No row: it is free.
select run_id
from runs
where namespace = @namespace and external_id = @external_id and external_id <> '' and finished_at is null and origin = 0
