-- Whether any run waits apart. No row: none does.
select 1 from runs where suspect_at is not null limit 1
