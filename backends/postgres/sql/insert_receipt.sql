-- Records how leases ended without ending their runs, to recognize repetitions. Always one row for each.
insert into receipts (token, run_id, verb, content, retry_at)
select * from unnest(@token::uuid[], @run_id::uuid[], @verb::text[], @content::text[], @retry_at::bigint[])
on conflict (token) do update set verb = excluded.verb, content = excluded.content, retry_at = excluded.retry_at
