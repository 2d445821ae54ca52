-- API keys, and where a database stands when its rows move to another.

create table api_keys (
    key_id       blob primary key,
    name         text not null,
    role         integer not null,
    namespaces   text not null default '', -- JSON list; '' for none
    queues       text not null default '',
    types        text not null default '',
    hash         blob not null, -- SHA-256 of the secret
    created_at   integer not null,
    expires_at   integer,
    last_used_at integer,
    revoked_at   integer
) strict, without rowid;
create unique index api_keys_name on api_keys (name) where revoked_at is null;

-- What is true of the database as a whole, by name: that it was moved away, that it is being filled, that it was restored.
create table standing (
    name  text primary key,
    value text not null,
    at    integer not null
) strict, without rowid;
