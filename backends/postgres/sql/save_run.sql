-- Writes what can change of locked runs, which are looked up one by one. Always one row for each.
update runs t
set status = s.status, attempts = s.attempts, failures = s.failures, lease_losses = s.lease_losses, steps = s.steps, bytes = s.bytes,
    error = s.error, available_at = s.available_at, started_at = s.started_at, finished_at = s.finished_at, expires_at = s.expires_at,
    worker_id = s.worker_id, waiting_for = s.waiting_for, note = s.note, paused = s.paused, gated = s.gated, held_at = s.held_at,
    pinned = s.pinned, cancel_requested_at = s.cancel_requested_at, cancel_reason = s.cancel_reason, grace_until = s.grace_until,
    continued_as = s.continued_as, final_token = s.final_token, suspect = s.suspect, suspect_at = s.suspect_at, tied = s.tied,
    deadline_at = s.deadline_at, named_deadline_at = s.named_deadline_at, pausing = s.pausing, paused_at = s.paused_at,
    divergences = s.divergences, diverged = s.diverged, unreached = s.unreached,
    settled = s.settled, owed_from = s.owed_from, unread_signals = case
        when s.ending then (select count(*) from signals i where i.run_id = s.run_id and i.step_name = '') else s.unread_signals end
from (
    select s.*, h.at
    from unnest(
        @run_id::uuid[], @status::smallint[], @attempts::int[], @failures::int[], @lease_losses::int[], @steps::bigint[], @bytes::bigint[],
        @error::text[], @available_at::bigint[], @started_at::bigint[], @finished_at::bigint[], @expires_at::bigint[], @worker_id::text[],
        @waiting_for::text[], @note::text[], @paused::bool[], @gated::bool[], @held_at::bigint[], @pinned::bool[],
        @cancel_requested_at::bigint[], @cancel_reason::text[], @grace_until::bigint[], @continued_as::uuid[], @final_token::uuid[],
        @suspect::text[], @suspect_at::bigint[], @tied::bool[], @deadline_at::bigint[], @named_deadline_at::bigint[], @pausing::bool[], @paused_at::bigint[],
        @divergences::text[], @diverged::text[], @unreached::text[],
        @settled::bigint[], @owed_from::bigint[], @unread_signals::int[], @ending::bool[]
    ) as s (
        run_id, status, attempts, failures, lease_losses, steps, bytes, error, available_at, started_at, finished_at, expires_at, worker_id,
        waiting_for, note, paused, gated, held_at, pinned, cancel_requested_at, cancel_reason, grace_until, continued_as, final_token,
        suspect, suspect_at, tied, deadline_at, named_deadline_at, pausing, paused_at, divergences, diverged, unreached,
        settled, owed_from, unread_signals, ending
    )
    cross join lateral (select ctid as at from runs where run_id = s.run_id offset 0) h
) s
where t.ctid = s.at
