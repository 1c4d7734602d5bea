-- The usage of a period keeps what a deleted agent has used. The next file validates the new references.
alter table agent_usage
  drop constraint agent_usage_tenant_id_agent_id_fkey,
  add constraint agent_usage_tenant_id_fkey foreign key (tenant_id) references tenants on delete cascade not valid;
alter table model_usage
  drop constraint model_usage_tenant_id_agent_id_fkey,
  add constraint model_usage_tenant_id_fkey foreign key (tenant_id) references tenants on delete cascade not valid;
alter table other_model_usage
  drop constraint other_model_usage_tenant_id_agent_id_fkey,
  add constraint other_model_usage_tenant_id_fkey foreign key (tenant_id) references tenants on delete cascade not valid;

-- Periods that are not whole months have the same length in every time zone of a session, also across a change to
-- daylight saving time.
create or replace function period_at(
  first timestamptz, last timestamptz, moment timestamptz, out period_start timestamptz, out period_end timestamptz
) language plpgsql immutable as $$
declare
  start timestamp := first at time zone 'UTC';
  stop timestamp := last at time zone 'UTC';
  here timestamp := moment at time zone 'UTC';
  months int := (extract(year from stop) - extract(year from start)) * 12
    + extract(month from stop) - extract(month from start);
  passed bigint := 0;
begin
  period_start := first;
  period_end := last;
  if moment < last then
    return;
  end if;
  if months > 0 and start + make_interval(months => months) = stop then
    passed := floor(((extract(year from here) - extract(year from start)) * 12
      + extract(month from here) - extract(month from start)) / months);
    if start + make_interval(months => (passed * months)::int) > here then
      passed := passed - 1;
    end if;
    period_start := (start + make_interval(months => (passed * months)::int)) at time zone 'UTC';
    period_end := (start + make_interval(months => ((passed + 1) * months)::int)) at time zone 'UTC';
  else
    passed := floor(extract(epoch from here - start) / extract(epoch from stop - start));
    period_start := (start + (stop - start) * passed) at time zone 'UTC';
    period_end := (start + (stop - start) * (passed + 1)) at time zone 'UTC';
  end if;
end
$$;
