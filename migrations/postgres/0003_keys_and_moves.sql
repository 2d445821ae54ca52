-- API keys, and where a database stands when its rows move to another.

create table api_keys (
    key_id       uuid primary key,
    name         text collate "C" not null,
    role         smallint not null,
    namespaces   text collate "C" not null default '', -- JSON list; '' for none
    queues       text collate "C" not null default '',
    types        text collate "C" not null default '',
    hash         bytea not null, -- SHA-256 of the secret
    created_at   bigint not null,
    expires_at   bigint,
    last_used_at bigint,
    revoked_at   bigint
);
create unique index api_keys_name on api_keys (name) where revoked_at is null;

-- What is true of the database as a whole, by name: that it was moved away, that it is being filled, that it was restored.
create table standing (
    name  text collate "C" primary key,
    value text collate "C" not null,
    at    bigint not null
);
