-- When the next attempt will have run too long. NULL: none has a timeout.
select min(timeout_at) from steps where status = 2 and timeout_at is not null
