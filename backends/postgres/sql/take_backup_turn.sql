-- Takes the turn to make the next scheduled backup. No row: another server took it within the interval. A time more
-- than an interval ahead comes from a clock that was wrong; it does not count.
insert into standing (name, value, at) values (@name, @value, @now)
on conflict (name) do update set value = excluded.value, at = excluded.at
where standing.at <= @now - @every::bigint or standing.at > @now + @every::bigint
returning at
