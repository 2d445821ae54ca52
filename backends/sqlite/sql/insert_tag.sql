-- One row a tag, for filters; the run itself holds them too.
insert into run_tags (namespace, key, value, run_id) values (@namespace, @key, @value, @run_id)
