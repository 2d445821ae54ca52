-- Whether any start was answered with an earlier run for its request, or any request is of a deleted run. No row: none is.
select 1 from requests union all select 1 from past_requests limit 1
