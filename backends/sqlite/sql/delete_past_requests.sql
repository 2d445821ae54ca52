-- Deletes requests of deleted runs of a namespace; a negative limit is none. No row changed: none.
delete from past_requests
where namespace = @namespace
  and request_id in (select request_id from past_requests where namespace = @namespace order by request_id limit @limit)
