-- Records the last use of keys, each given once or more by the hexadecimal digits of its id and a time. No row changed:
-- none moved forward.
update api_keys as k
set last_used_at = used.at
from (
    select unhex(substr(value, 1, 32)) as key_id, max(cast(substr(value, 33) as integer)) as at
    from json_each(@uses)
    group by 1
) as used
where k.key_id = used.key_id and (k.last_used_at is null or k.last_used_at < used.at)
