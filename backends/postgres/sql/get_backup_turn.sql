-- When the turn was last taken. No row: it was given back.
select at from standing where name = @name
