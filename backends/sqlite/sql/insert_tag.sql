-- One row per tag, for filters; the run's row holds them too.
insert into run_tags (namespace, key, value, run_id) values (@namespace, @key, @value, @run_id)
