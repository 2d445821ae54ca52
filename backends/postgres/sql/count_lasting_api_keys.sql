-- How many keys are not revoked, and how many of these are admin keys for all namespaces that never expire. Always one
-- row.
select count(*), count(*) filter (where role = 1 and namespaces = '' and expires_at is null)
from api_keys
where revoked_at is null
