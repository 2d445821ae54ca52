-- A change that was refused. No row changed: it is noted already.
insert into audit (event_id, at, actor, peer, method, namespace, subject, subject_id, outcome, reason, detail)
values (@event_id, @at, @actor, @peer, @method, @namespace, @subject, @subject_id, @outcome, @reason, @detail)
on conflict (event_id) do nothing
