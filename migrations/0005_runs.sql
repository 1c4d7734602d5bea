-- Execution traces, and the counters that a settled turn moves in the same transaction.

-- A process that runs turns renews its row; runs of a process whose row has expired are dead.
create table instances (
  id text primary key,
  lease_until timestamptz not null
);

create table agent_runs (
  id text primary key,
  tenant_id text not null,
  agent_id text not null,
  conversation_id text references conversations on delete cascade,
  ticket bigint,
  instance_id text not null,
  -- The user's message is stored before anything else happens; it joins the conversation when the turn settles.
  user_message_id text not null,
  user_message text not null,
  message_id text,
  -- The period in which the turn was reserved.
  period_start timestamptz not null,
  status text not null check (status in ('running', 'complete', 'failed')),
  started_at timestamptz not null default now(),
  completed_at timestamptz,
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index agent_runs_agent on agent_runs (agent_id, id);
create index agent_runs_conversation on agent_runs (conversation_id, ticket);
create index agent_runs_running on agent_runs (instance_id) where status = 'running';

create table agent_run_events (
  run_id text not null references agent_runs on delete cascade,
  sequence int not null,
  type text not null,
  status text not null,
  label text not null,
  payload jsonb,
  at timestamptz not null,
  primary key (run_id, sequence)
);

-- What a tenant has used in a period: entitlements are reserved here under the row's lock, so no two requests share the last place.
create table tenant_usage (
  tenant_id text not null references tenants on delete cascade,
  period_start timestamptz not null,
  turns bigint not null default 0,
  ingestion_jobs bigint not null default 0,
  primary key (tenant_id, period_start)
);

create table agent_usage (
  agent_id text not null references agents on delete cascade,
  period_start timestamptz not null,
  turns bigint not null default 0,
  ingestion_jobs bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  primary key (agent_id, period_start)
);

-- The period that counts now: the subscription's, else the calendar month in UTC.
create function period_start_of(tenant text) returns timestamptz language sql stable as $$
  select coalesce(
    (select period_start from subscriptions where tenant_id = tenant),
    date_trunc('month', now(), 'UTC'))
$$;
