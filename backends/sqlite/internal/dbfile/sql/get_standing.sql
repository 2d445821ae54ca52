-- A state of the database. No row: it is not set.
select value, at from standing where name = @name
