-- What is true of the database as a whole. Always one row, empty: it is not.
select coalesce((select value from standing where name = @name), '')
