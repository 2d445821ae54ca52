-- Writes the settings of a namespace. Always one row.
update namespaces
set display_name = @display_name, description = @description, enabled = @enabled, updated_at = @updated_at, retention_us = @retention_us,
    keep = @keep, failure_queue = @failure_queue
where namespace = @namespace
