-- Sets a state of the database. If it is set already, this is an error.
insert into standing (name, value, at) values (@name, @value, @at)
