-- Counts the rows of a backup. Always one row.
select (select count(*) from runs), (select count(*) from runs where finished_at is null), (select count(*) from steps)
