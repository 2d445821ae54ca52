-- Writes the namespaces that a key is for. Always one row.
update api_keys set namespaces = @namespaces where key_id = @key_id
