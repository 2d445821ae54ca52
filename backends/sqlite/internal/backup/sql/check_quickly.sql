-- Damage, one row each, without checking indexes against their tables. The row "ok": none.
pragma quick_check
