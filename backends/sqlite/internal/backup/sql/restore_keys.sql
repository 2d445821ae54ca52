-- Keys by whether they are revoked, by id. No row: there are none.
select key_id, name from api_keys where (revoked_at is null) = @valid order by key_id
