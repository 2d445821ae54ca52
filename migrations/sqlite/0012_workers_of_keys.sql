-- The worker ids that a worker's key is for, as globs. Empty: all. Servers before this schema ignore it.
alter table api_keys add column worker_ids text not null default '';
