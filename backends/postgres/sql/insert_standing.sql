-- Something becomes true of the database as a whole. A row that is there is an error.
insert into standing (name, value, at) values (@name, @value, @at)
