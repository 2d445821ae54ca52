-- The table that says which migrations were applied.
create table if not exists schema_migrations (
    number     integer primary key,
    name       text not null,
    checksum   text not null, -- of the file, SHA-256
    applied_at timestamptz not null
)
