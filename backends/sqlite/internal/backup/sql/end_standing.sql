-- Removes a state if it has the expected value. No row: it does not.
delete from standing where name = @name and value = @old
