-- The length of the whole list. Always one row.
select count(*) from namespaces
