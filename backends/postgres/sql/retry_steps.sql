-- Gives the run's failed steps a new retry budget for its next attempt; interrupted steps (code 103) run again in any
-- case. No row changed: none failed.
update steps
set status = 1, retry_at = @retry_at, failures = 0, settled = 0
where run_id = @run_id and status = 4 and latest and (nullif(error, '')::jsonb -> 'code') is distinct from '103'
