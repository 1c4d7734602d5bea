-- What the models may cost a tenant, one of its agents or one of its keys in a day or a month of UTC, in billionths of a US dollar.
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
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, key_id) references api_keys (tenant_id, id) on delete cascade,
  check (agent_id is null or key_id is null)
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

-- True where the tenant may have budgets: a turn of any other asks nothing more.
alter table subscriptions add column has_budgets boolean not null default false;

-- Holds a part of every budget that the turn is of. Null when that is done; the first budget that is spent, and then nothing is held.
-- Rows are locked in the order of their budgets, here and where a turn settles.
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

-- Ends what the turn holds, and counts what it has cost in its place. A row for each threshold, in percent, that this has passed.
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

-- Calls of the account's provider that failed since the last one that worked, and since when that has been reported.
alter table channels add column failures int not null default 0;
alter table channels add column failing_since timestamptz;

-- When questions without an answer are looked for next, of tenants that want to be told.
create table gap_searches (
  tenant_id text not null primary key references tenants on delete cascade,
  due_at timestamptz not null
);
create index gap_searches_due on gap_searches (due_at);

-- Groups of questions without an answer that were reported: known again by the turns that they have in common.
create table reported_gaps (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  -- The threshold that was reported.
  threshold int not null,
  run_ids text[] not null,
  primary key (tenant_id, id)
);
