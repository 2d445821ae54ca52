-- Keys and whether they are revoked, by id. No row: none.
select key_id, name from api_keys where (revoked_at is null) = @valid order by key_id
