-- The turn to make the next scheduled backup. No row: another server has had it within the interval. One that was taken more than an interval ahead
-- was so while the clock was: when that was nobody knows, and it is no reason to wait until then.
insert into standing (name, value, at) values (@name, @value, @now)
on conflict (name) do update set value = excluded.value, at = excluded.at
where standing.at <= @now - @every::bigint or standing.at > @now + @every::bigint
returning at
