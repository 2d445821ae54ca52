-- How many runs have a tag, at most @limit. Always one row.
select count(*) from (
    select 1 from run_tags where namespace = @namespace and key = @tag_key and value = @tag_value limit @limit)
