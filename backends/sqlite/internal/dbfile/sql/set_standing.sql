-- Sets a state of the database. Always one row.
insert into standing (name, value, at) values (@name, @value, @at)
on conflict (name) do update set value = excluded.value, at = excluded.at
