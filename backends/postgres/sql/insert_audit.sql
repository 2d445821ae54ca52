-- An audit event, in the transaction of its change. Always one row.
insert into audit (event_id, at, actor, peer, method, namespace, subject, subject_id, outcome, reason, detail)
values (@event_id, @at, @actor, @peer, @method, @namespace, @subject, @subject_id, @outcome, @reason, @detail)
