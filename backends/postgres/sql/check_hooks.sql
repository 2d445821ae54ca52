-- Hooks that Kagzi cannot have made. No row: none.
select 'hook', hook_id, case
    when scheme not between 1 and 3 then 'has a scheme that is not known'
    when length(secret) not between 16 and 255 then 'has no secret that it may have'
    when name = '' or task_queue = '' or workflow_type = '' then 'has no name, queue or type'
    when (old_secret = '') <> (old_until is null) then 'has an earlier secret without an end, or an end without one'
    else 'was rotated before it was made' end
from hooks
where scheme not between 1 and 3 or length(secret) not between 16 and 255
   or name = '' or task_queue = '' or workflow_type = '' or (old_secret = '') <> (old_until is null)
   or rotated_at < created_at
