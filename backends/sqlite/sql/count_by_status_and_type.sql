-- All runs, counted. No row: there are none.
select status, workflow_type, count(*)
from runs
where @namespace = '' or namespace = @namespace
group by status, workflow_type
