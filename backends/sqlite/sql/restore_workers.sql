-- Nobody works any more. No row: nobody did.
update workers set status = 3, reason = @reason, active = 0, deregistered_at = @now where status <> 3
