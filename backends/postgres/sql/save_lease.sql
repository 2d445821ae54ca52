-- Writes what runs have recorded under their leases, which are locked, and whether their ends affect other rows. Always
-- one row for each.
update leases t
set steps = s.steps, bytes = s.bytes, progressed = s.progressed, tied = s.tied, suspect = s.suspect, pausing = s.pausing,
    settled = s.settled, owed_from = s.owed_from
from (
    select s.*, h.at
    from unnest(
        @run_id::uuid[], @steps::bigint[], @bytes::bigint[], @progressed::bool[], @tied::bool[], @suspect::bool[], @pausing::bool[],
        @settled::bigint[], @owed_from::bigint[]
    ) as s (
        run_id, steps, bytes, progressed, tied, suspect, pausing, settled, owed_from
    )
    cross join lateral (select ctid as at from leases where run_id = s.run_id offset 0) h
) s
where t.ctid = s.at
