-- How much a backup holds. Always one row.
select (select count(*) from runs), (select count(*) from runs where status <= 3), (select count(*) from steps)
