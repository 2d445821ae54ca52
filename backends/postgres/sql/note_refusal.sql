-- Records a refused change. No row changed: it was recorded before.
insert into audit (event_id, at, actor, peer, method, namespace, subject, subject_id, outcome, reason, detail)
values (@event_id, @at, @actor, @peer, @method, @namespace, @subject, @subject_id, @outcome, @reason, @detail)
on conflict (event_id) do nothing
