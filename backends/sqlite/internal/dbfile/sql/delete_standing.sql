-- Removes a state of the database. No row: it was not set.
delete from standing where name = @name
