-- Records how a lease ended without ending its run, to recognize repetitions. Always one row.
insert into receipts (token, run_id, verb, content, retry_at) values (@token, @run_id, @verb, @content, @retry_at)
on conflict (token) do update set verb = excluded.verb, content = excluded.content, retry_at = excluded.retry_at
