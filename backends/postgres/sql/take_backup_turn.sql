-- The turn to make the next scheduled backup. No row: another server has had it within the interval.
insert into standing (name, value, at) values (@name, @value, @now)
on conflict (name) do update set value = excluded.value, at = excluded.at where standing.at <= @now - @every::bigint
returning at
