-- A writer takes the lock at once, so that its reads are the newest.
begin immediate
