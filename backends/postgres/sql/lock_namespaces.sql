-- Waits for all transactions that have read a namespace, and keeps others from reading one. A statement that waits here
-- takes its snapshot afterwards.
lock table namespaces in access exclusive mode
