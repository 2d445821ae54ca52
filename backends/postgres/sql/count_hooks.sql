-- How many hooks a namespace has. Always one row.
select count(*) from hooks where namespace = @namespace
