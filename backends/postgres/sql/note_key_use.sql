-- Records the last use of keys, each given once or more with a time. They are locked in the order of their ids, so that
-- two servers that record the same keys cannot deadlock. No row changed: none moved forward.
with used as (
    select key_id, max(at) as at from unnest(@key_ids::uuid[], @at::bigint[]) as given (key_id, at) group by key_id
), moved as materialized (
    select k.key_id, used.at
    from api_keys k
    join used on used.key_id = k.key_id
    where k.last_used_at is null or k.last_used_at < used.at
    order by k.key_id
    for no key update of k
)
update api_keys k
set last_used_at = moved.at
from moved
where k.key_id = moved.key_id and (k.last_used_at is null or k.last_used_at < moved.at)
