-- Which period counts. A subscription's period that is over is followed by the next of the same length, so that a quota
-- is never spent for ever: whole months stay whole months (UTC, counted from the first day so that short months do not
-- shift the later ones), anything else goes by its exact length.
create function period_at(
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
    passed := floor(extract(epoch from moment - first) / extract(epoch from last - first));
    period_start := first + (last - first) * passed;
    period_end := first + (last - first) * (passed + 1);
  end if;
end
$$;

-- The period that counts now: the subscription's, else the calendar month in UTC.
create function period_of(tenant text, out period_start timestamptz, out period_end timestamptz)
language plpgsql stable as $$
declare
  first timestamptz;
  last timestamptz;
begin
  select s.period_start, s.period_end into first, last from subscriptions s where s.tenant_id = tenant;
  if first is null then
    period_start := date_trunc('month', now(), 'UTC');
    period_end := (date_trunc('month', now() at time zone 'UTC') + interval '1 month') at time zone 'UTC';
  else
    select p.period_start, p.period_end into period_start, period_end from period_at(first, last, now()) p;
  end if;
end
$$;

create or replace function period_start_of(tenant text) returns timestamptz language sql stable as $$
  select period_start from period_of(tenant)
$$;

-- Who was asked to choose a password. The token is random, so its hash is all that is stored; it is good once.
create table user_invitations (
  token_hash bytea primary key,
  user_id text not null unique references users on delete cascade,
  -- The user has not chosen a password before.
  first boolean not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
