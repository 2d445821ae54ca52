-- Fails, by a division by zero, if a run that this transaction has made must not exist: since insert_run looked,
-- another run may have had its external id and ended (with ReuseNever), or the request may have been answered with such
-- a run. No unique key covers this. Later transactions find the run that was made, which is active. The subqueries are
-- written as in insert_run.
select 1 / (not exists (
    select from unnest(@run_ids::uuid[], @namespaces::text[], @external_ids::text[], @request_ids::text[], @never::bool[])
        as s (run_id, namespace, external_id, request_id, never)
    where (select m.run_id from runs m where m.run_id = s.run_id) is not null
      and (s.request_id <> ''
              and (select q.run_id from requests q where q.namespace = s.namespace and q.request_id = s.request_id) is not null
          or s.never and (
              select r.run_id from runs r
              where r.namespace = s.namespace and r.external_id >= s.external_id and r.external_id <= s.external_id and r.external_id <> ''
                and r.origin = 0 and r.run_id <> s.run_id
              order by r.external_id limit 1) is not null)
))::int
