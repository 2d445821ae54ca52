-- How many keys are not revoked, and how many of these are admin keys for all namespaces that never expire. Always one
-- row.
select count(*), count(case when role = 1 and namespaces = '' and expires_at is null then 1 end)
from api_keys
where revoked_at is null
