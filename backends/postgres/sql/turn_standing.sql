-- Replaces a state by another one if it has the expected value. No row: it does not.
update standing set name = @new_name, value = @new where name = @name and value = @old
