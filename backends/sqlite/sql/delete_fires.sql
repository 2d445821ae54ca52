-- Deletes the tick records of a schedule. No row changed: it never fired.
delete from fires where schedule_id = @schedule_id
