-- Operations that change hooks run one after another, because their limit is about all hooks of a namespace. Readers do
-- not wait.
lock table hooks in share row exclusive mode
