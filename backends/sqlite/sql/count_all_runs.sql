-- How many runs a namespace has, from an index only. Always one row.
select count(*) from runs where namespace = @namespace
