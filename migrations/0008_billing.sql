-- What a tenant may use, what it has used, what it has paid, and what it may spend.

-- What a tenant may use.
create table subscriptions (
  tenant_id text primary key references tenants on delete cascade,
  plan text not null,
  status text not null default 'active',
  period_start timestamptz,
  period_end timestamptz,
  public_api boolean not null,
  turns_limit bigint not null check (turns_limit >= 0),
  ingestion_jobs_limit bigint not null check (ingestion_jobs_limit >= 0),
  sources_limit bigint not null check (sources_limit >= 0),
  overage_enabled boolean not null,
  -- True where the tenant may have budgets: a turn of any other asks nothing more.
  has_budgets boolean not null default false,
  updated_at timestamptz not null default now(),
  check ((period_start is null) = (period_end is null)),
  check (period_start < period_end)
);

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

-- The period that counts now: the subscription's, else the calendar month in UTC.
create function period_start_of(tenant text) returns timestamptz language sql stable as $$
  select period_start from period_of(tenant)
$$;

-- Turns that are used once those of the period are gone. `used` may exceed `granted` after a refund.
create table tenant_credits (
  tenant_id text primary key references tenants on delete cascade,
  granted bigint not null default 0 check (granted >= 0),
  used bigint not null default 0 check (used >= 0)
);

-- What a tenant has used in a period: entitlements are reserved here under the row's lock, so no two requests share the
-- last place.
create table tenant_usage (
  tenant_id text not null references tenants on delete cascade,
  period_start timestamptz not null,
  turns bigint not null default 0,
  ingestion_jobs bigint not null default 0,
  -- How many of the turns were paid with credits: these leave the plan's own places free.
  credited bigint not null default 0,
  primary key (tenant_id, period_start)
);

create table agent_usage (
  tenant_id text not null,
  agent_id text not null,
  period_start timestamptz not null,
  turns bigint not null default 0,
  ingestion_jobs bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  primary key (tenant_id, agent_id, period_start),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- What an agent has asked of each model in a period: all calls, those of turns that failed included.
create table model_usage (
  tenant_id text not null,
  agent_id text not null,
  period_start timestamptz not null,
  -- As it is configured: provider/model.
  model text not null,
  calls bigint not null default 0,
  unpriced_calls bigint not null default 0,
  input_tokens bigint not null default 0,
  -- A part of input_tokens.
  cached_input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cost_nano bigint not null default 0,
  primary key (tenant_id, agent_id, period_start, model),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- Takes one turn that was bought, if there is one: what a turn begins with calls it once the period's turns are gone.
create function take_credit(tenant text, period timestamptz) returns boolean language plpgsql as $$
begin
  update tenant_credits set used = used + 1 where tenant_id = tenant and used < granted;
  if not found then
    return false;
  end if;
  insert into tenant_usage as known (tenant_id, period_start, turns, credited) values (tenant, period, 1, 1)
  on conflict (tenant_id, period_start) do update set turns = known.turns + 1, credited = known.credited + 1;
  return true;
end
$$;

-- Every event that meant something, once. What a tenant has is worked out from all of them, so that their order and
-- their number do not matter.
create table billing_events (
  -- The provider's: a repeat finds itself here.
  id text primary key,
  -- As the event names it; null where it does not and another of the same object may.
  tenant_id text references tenants on delete cascade,
  -- The subscription or the payment that it is about.
  object_id text not null,
  -- Seconds since 1970, by the provider's clock.
  created bigint not null,
  -- Which of two events of the same second is the later one.
  rank int not null,
  -- domain/Billing, Fact.
  fact jsonb not null,
  received_at timestamptz not null default now()
);
create index billing_events_object on billing_events (object_id);
create index billing_events_tenant on billing_events (tenant_id);
create index billing_events_of_nobody on billing_events (received_at) where tenant_id is null;

-- What the models may cost a tenant, one of its agents or one of its keys in a day or a month of UTC, in billionths of
-- a US dollar.
create table budgets (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  -- Neither of both: the whole tenant.
  agent_id text,
  key_id text,
  period text not null check (period in ('day', 'month')),
  limit_nano bigint not null check (limit_nano > 0),
  version int not null default 1,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  check (agent_id is null or key_id is null),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, key_id) references api_keys (tenant_id, id) on delete cascade
);
create unique index budgets_subject on budgets (tenant_id, agent_id, key_id, period) nulls not distinct;

-- What turns have cost of a budget's period, and what those hold that run.
create table budget_periods (
  tenant_id text not null,
  budget_id text not null,
  period_start timestamptz not null,
  spent_nano bigint not null default 0,
  held_nano bigint not null default 0,
  -- The most that one turn has cost: what the next one holds.
  dearest_nano bigint not null default 0,
  -- The highest threshold that was reported.
  reported_percent int not null default 0,
  primary key (tenant_id, budget_id, period_start),
  foreign key (tenant_id, budget_id) references budgets (tenant_id, id) on delete cascade
);

-- What a running turn holds. One whose process dies has its hold until a sweep.
create table budget_holds (
  tenant_id text not null,
  run_id text not null,
  budget_id text not null,
  period_start timestamptz not null,
  nano bigint not null,
  instance_id text not null,
  ends_by timestamptz not null,
  primary key (tenant_id, run_id, budget_id),
  foreign key (tenant_id, budget_id, period_start)
    references budget_periods (tenant_id, budget_id, period_start) on delete cascade
);
create index budget_holds_budget on budget_holds (tenant_id, budget_id, period_start);

-- Holds a part of every budget that the turn is of. Null when that is done; the first budget that is spent, and then
-- nothing is held. Rows are locked in the order of their budgets, here and where a turn settles.
create function hold_budgets(
  tenant text, agent text, api_key text, run text, instance text, until timestamptz
) returns jsonb language plpgsql as $$
declare
  found_budget record;
begin
  insert into budget_periods (tenant_id, budget_id, period_start)
  select b.tenant_id, b.id, date_trunc(b.period, now(), 'UTC') from budgets b
  where b.tenant_id = tenant and (b.agent_id is null or b.agent_id = agent) and (b.key_id is null or b.key_id = api_key)
  order by b.id
  on conflict do nothing;
  for found_budget in
    select b.id, b.agent_id, b.key_id, b.period, b.limit_nano, p.period_start, p.spent_nano + p.held_nano as taken
    from budgets b join budget_periods p on p.tenant_id = b.tenant_id and p.budget_id = b.id
      and p.period_start = date_trunc(b.period, now(), 'UTC')
    where b.tenant_id = tenant and (b.agent_id is null or b.agent_id = agent) and (b.key_id is null or b.key_id = api_key)
    order by b.id for update of p
  loop
    if found_budget.taken >= found_budget.limit_nano then
      return jsonb_build_object(
        'of', case when found_budget.key_id is not null then 'key' when found_budget.agent_id is not null then 'agent'
          else 'tenant' end,
        'period', found_budget.period,
        'resetsAt', to_char((found_budget.period_start at time zone 'UTC') + ('1 ' || found_budget.period)::interval,
          'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
    end if;
  end loop;
  with held as (
    insert into budget_holds (tenant_id, run_id, budget_id, period_start, nano, instance_id, ends_by)
    select b.tenant_id, run, b.id, p.period_start,
      -- As much as the dearest turn yet; a hundredth of the limit before there was one.
      least(b.limit_nano, greatest(1, coalesce(
        nullif(p.dearest_nano, 0),
        nullif((select q.dearest_nano from budget_periods q
          where q.tenant_id = b.tenant_id and q.budget_id = b.id and q.period_start < p.period_start
          order by q.period_start desc limit 1), 0),
        b.limit_nano / 100))),
      instance, until
    from budgets b join budget_periods p on p.tenant_id = b.tenant_id and p.budget_id = b.id
      and p.period_start = date_trunc(b.period, now(), 'UTC')
    where b.tenant_id = tenant and (b.agent_id is null or b.agent_id = agent) and (b.key_id is null or b.key_id = api_key)
    on conflict do nothing
    returning budget_id, period_start, nano
  )
  update budget_periods p set held_nano = p.held_nano + held.nano from held
  where p.tenant_id = tenant and p.budget_id = held.budget_id and p.period_start = held.period_start;
  return null;
end
$$;

-- Ends what the turn holds, and counts what it has cost in its place. A row for each threshold, in percent, that this
-- has passed.
create function settle_budgets(tenant text, run text, cost bigint) returns table (
  budget_id text, agent_id text, key_id text, period text, period_start timestamptz, percent int, limit_nano bigint, spent_nano bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  held record;
  was int;
  threshold int;
begin
  for held in
    select p.budget_id, p.period_start, b.agent_id, b.key_id, b.period, b.limit_nano
    from budget_holds h
    join budget_periods p on p.tenant_id = h.tenant_id and p.budget_id = h.budget_id and p.period_start = h.period_start
    join budgets b on b.tenant_id = p.tenant_id and b.id = p.budget_id
    where h.tenant_id = tenant and h.run_id = run
    order by p.budget_id for update of p
  loop
    with ended as (
      delete from budget_holds h where h.tenant_id = tenant and h.run_id = run and h.budget_id = held.budget_id returning h.nano
    )
    update budget_periods p set held_nano = p.held_nano - ended.nano, spent_nano = p.spent_nano + cost,
      dearest_nano = greatest(p.dearest_nano, cost)
    from ended where p.tenant_id = tenant and p.budget_id = held.budget_id and p.period_start = held.period_start
    returning p.spent_nano, p.reported_percent into spent_nano, was;
    if found then
      foreach threshold in array array[80, 100] loop
        if was < threshold and spent_nano::numeric * 100 >= held.limit_nano::numeric * threshold then
          update budget_periods p set reported_percent = threshold
          where p.tenant_id = tenant and p.budget_id = held.budget_id and p.period_start = held.period_start;
          budget_id := held.budget_id;
          agent_id := held.agent_id;
          key_id := held.key_id;
          period := held.period;
          period_start := held.period_start;
          percent := threshold;
          limit_nano := held.limit_nano;
          return next;
        end if;
      end loop;
    end if;
  end loop;
end
$$;
