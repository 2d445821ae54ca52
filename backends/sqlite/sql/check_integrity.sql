-- Damage, a line each. The row ok: none.
pragma integrity_check
