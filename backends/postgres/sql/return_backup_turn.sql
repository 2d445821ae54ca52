-- Gives the turn back. No row: another server has taken it since.
delete from standing where name = @name and value = @value and at = @now
