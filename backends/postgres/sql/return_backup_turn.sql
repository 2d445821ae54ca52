-- The turn is free again. No row: another server has it by now.
delete from standing where name = @name and value = @value and at = @now
