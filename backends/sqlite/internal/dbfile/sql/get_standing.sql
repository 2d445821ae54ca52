-- What is true of the database as a whole. No row: it is not.
select value, at from standing where name = @name
