-- Sessions of API keys, for browsers. They outlive neither their time nor their key, whose row stays when it is revoked.
create table sessions (
    session_id blob not null primary key,
    key_id     blob not null,
    hash       blob not null, -- SHA-256 of the secret
    created_at integer not null,
    used_at    integer not null,
    expires_at integer not null
) strict, without rowid;
create index sessions_key on sessions (key_id, session_id);
create index sessions_expiry on sessions (expires_at, session_id);
