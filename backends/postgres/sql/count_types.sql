-- The length of the whole list. Always one row.
select count(distinct workflow_type) from runs where namespace = @namespace
