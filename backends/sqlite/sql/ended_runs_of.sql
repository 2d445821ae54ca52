-- Runs of a namespace that is being emptied, none of which is open, by id; with the approximate number of rows of each,
-- overflow pages of large values included. No row: none.
select run_id, steps + attempts + bytes / 4096
from runs
where namespace = @namespace and status > 3
order by run_id
limit @limit
