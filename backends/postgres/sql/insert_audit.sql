-- Audit events, in the transaction of their changes. Always one row for each.
insert into audit (event_id, at, actor, peer, method, namespace, subject, subject_id, outcome, reason, detail)
select * from unnest(
    @event_id::uuid[], @at::bigint[], @actor::text[], @peer::text[], @method::text[], @namespace::text[], @subject::text[], @subject_id::text[],
    @outcome::text[], @reason::text[], @detail::text[]
)
