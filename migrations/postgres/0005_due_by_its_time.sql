-- What is due has a time, and nothing else has one: so a claim need not speak of the status, and then no other index of what is open will do
-- for it. In a quiet hour such an index is empty, reading all of it looks as cheap as a look into the right one, and the plan stays while a
-- backlog grows. The same goes for what expires.

drop index runs_claim;
create index runs_claim on runs (lane_id, available_at, run_id) where available_at is not null or status in (1, 3);
drop index runs_expiry;
create index runs_expiry on runs (expires_at, run_id) where expires_at is not null and finished_at is null;
