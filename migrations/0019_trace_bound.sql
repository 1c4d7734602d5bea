-- Traces are deleted by whole weeks: their tables become partitioned by the moment with which the id of a run begins. The
-- tables of before become the first partition. Its bound is some weeks ahead, so that a later step may fail and be
-- repeated. The next file validates this check beside readers and writers, so that the last one scans nothing.
do $$
declare
  millis bigint := (extract(epoch from date_trunc('week', now(), 'UTC') + interval '6 weeks') * 1000)::bigint;
  bound text := 'run_';
  newest text;
begin
  for place in reverse 9..0 loop
    bound := bound || substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((millis >> (5 * place)) & 31)::int, 1);
  end loop;
  -- Of a process whose clock was ahead.
  select max(last.id) into newest
  from tenants t cross join lateral (select max(r.id) as id from agent_runs r where r.tenant_id = t.id) last;
  if newest >= bound then
    bound := newest || 'z';
  end if;
  execute format('alter table agent_run_events add constraint agent_run_events_bound check (run_id < %L) not valid', bound);
  execute format('alter table run_passages add constraint run_passages_bound check (run_id < %L) not valid', bound);
end
$$;
