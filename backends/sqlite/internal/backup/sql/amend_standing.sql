-- What is true changes, unless it did already. No row: it is not what it was.
update standing set value = @new where name = @name and value = @old
