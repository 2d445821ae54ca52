-- Whoever makes or revokes a key does so alone: the rules about the first key and the last admin's are about all of them. Readers do not wait.
lock table api_keys in share row exclusive mode
