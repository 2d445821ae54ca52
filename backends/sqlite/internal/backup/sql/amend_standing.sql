-- Replaces the value of a state if it is the expected one. No row: it is not.
update standing set value = @new where name = @name and value = @old
