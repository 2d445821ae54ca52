-- Damage, one row each. The row "ok": none.
pragma integrity_check
