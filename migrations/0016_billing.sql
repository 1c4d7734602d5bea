-- What the billing provider has told, and turns that were bought beside a plan.

-- Every event that meant something, once. What a tenant has is worked out from all of them, so that their order and
-- their number do not matter.
create table billing_events (
  -- The provider's: a repeat finds itself here.
  id text primary key,
  -- The subscription or the payment that it is about.
  object_id text not null,
  -- As the event names it; null where it does not and another of the same object may.
  tenant_id text references tenants on delete cascade,
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

-- Turns that are used once those of the period are gone. `used` may exceed `granted` after a refund.
create table tenant_credits (
  tenant_id text primary key references tenants on delete cascade,
  granted bigint not null default 0 check (granted >= 0),
  used bigint not null default 0 check (used >= 0)
);

-- How many of the turns were paid with credits: these leave the plan's own places free.
alter table tenant_usage add column credited bigint not null default 0;

-- The turn was reserved with a credit, which it gives back when it fails before the model was called.
alter table agent_runs add column credited boolean not null default false;

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
