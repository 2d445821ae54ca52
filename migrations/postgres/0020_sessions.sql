-- Sessions of API keys, for browsers. They outlive neither their time nor their key, whose row stays when it is revoked.
create table sessions (
    session_id uuid primary key,
    key_id     uuid not null,
    hash       bytea not null, -- SHA-256 of the secret
    created_at bigint not null,
    used_at    bigint not null,
    expires_at bigint not null
);
create index sessions_key on sessions (key_id, session_id);
create index sessions_expiry on sessions (expires_at, session_id);
