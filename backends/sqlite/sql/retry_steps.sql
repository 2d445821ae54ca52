-- With a new attempt of the run its failed steps get a new budget; interrupted ones (code 103) run again anyway. No row changed: none failed.
update steps
set status = 1, retry_at = @retry_at, failures = 0
where run_id = @run_id and status = 4 and latest = 1 and json_extract(nullif(error, ''), '$.code') is not 103
