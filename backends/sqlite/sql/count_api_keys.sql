-- The length of the whole list. Always one row.
select count(*) from api_keys
