-- An error here means that SQLite has rolled back by itself.
rollback
