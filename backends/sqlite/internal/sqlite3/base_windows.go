package sqlite3

// lockless is the name of SQLite's VFS without locks.
const lockless = "win32-none"
