-- Of a schedule that is deleted. No row changed: it never fired.
delete from fires where schedule_id = @schedule_id
