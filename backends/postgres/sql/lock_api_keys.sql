-- Operations that make or revoke keys run one after another, because the rules about the first key and the last admin
-- key are about all keys. Readers do not wait.
lock table api_keys in share row exclusive mode
