-- A new namespace. Always one row.
insert into namespaces (namespace, id, display_name, description, enabled, created_at, updated_at, retention_us, keep, failure_queue)
values (@namespace, @id, @display_name, @description, @enabled, @created_at, @updated_at, @retention_us, @keep, @failure_queue)
