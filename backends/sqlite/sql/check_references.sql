-- Rows that refer to nothing, by their table. No row: none.
select "table", parent from pragma_foreign_key_check
