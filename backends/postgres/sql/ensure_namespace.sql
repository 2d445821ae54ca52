-- No row: it exists already.
insert into namespaces (namespace, id, created_at, updated_at) values (@namespace, @id, @now, @now)
on conflict (namespace) do nothing
