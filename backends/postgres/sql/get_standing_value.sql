-- A state of the database. Always one row, empty if the state is not set.
select coalesce((select value from standing where name = @name), '')
