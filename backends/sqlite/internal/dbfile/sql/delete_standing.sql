-- It is not true any more. No row: it was not.
delete from standing where name = @name
