-- Rows with dangling references, by table. No row: none.
select "table", parent from pragma_foreign_key_check
