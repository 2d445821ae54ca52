-- Locks runs as far as nobody else has them, for who holds what their holder may want. No row: somebody has all of them.
select run_id from runs where run_id = any(@run_ids) for no key update skip locked
