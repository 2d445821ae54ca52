-- What is true turns into something else that is, unless it did already. No row: it is not what it was.
update standing set name = @new_name, value = @new where name = @name and value = @old
