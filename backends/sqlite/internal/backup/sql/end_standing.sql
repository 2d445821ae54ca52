-- It is not true any more, unless that has changed. No row: it is not what it was.
delete from standing where name = @name and value = @old
