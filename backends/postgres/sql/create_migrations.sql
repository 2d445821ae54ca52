-- The table of applied migrations.
create table if not exists schema_migrations (
    number     integer primary key,
    name       text not null,
    checksum   text not null, -- SHA-256 of the file
    applied_at timestamptz not null
)
