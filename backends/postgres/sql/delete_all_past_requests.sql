-- Deletes what came since delete_past_requests found nothing. No row changed: nothing.
delete from past_requests where namespace = @namespace
