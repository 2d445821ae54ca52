-- Damage, a line each, without what takes an index apart. The row ok: none.
pragma quick_check
