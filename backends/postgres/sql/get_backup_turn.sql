-- When the turn was taken last. No row: it was given back.
select at from standing where name = @name
