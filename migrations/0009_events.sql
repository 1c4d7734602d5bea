-- Events out: where customers want to be told, and one row for each event and endpoint, written with what it reports.

create table webhook_endpoints (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  url text not null,
  -- Until when somebody fetches what waits for it, unless they fetch again; null for an endpoint with an address.
  listening_until timestamptz,
  events text[] not null,
  payload text not null,
  version int not null default 1,
  status text not null default 'active' check (status in ('active', 'disabled')),
  -- Why it is disabled; null while it is active.
  disabled_reason text,
  -- Sealed. The previous one signs too until its time is over.
  secret text not null,
  previous_secret text,
  previous_until timestamptz,
  -- Failed calls since the last one that was taken, and since when.
  failures int not null default 0,
  failing_since timestamptz,
  -- An endpoint that keeps failing is called by one delivery at a time, and not before this.
  retry_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
create index webhook_endpoints_listening on webhook_endpoints (listening_until) where listening_until is not null;

create table webhook_deliveries (
  tenant_id text not null,
  -- Made from what is reported, so that one event has one id at all endpoints and in all repeats.
  event_id text not null,
  endpoint_id text not null,
  -- The order of the events of a conversation: taken while its row is locked.
  seq bigint generated always as identity,
  agent_id text,
  conversation_id text,
  type text not null,
  -- Ids alone, no content: a full payload is read when it is sent.
  ids jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'cancelled')),
  attempts int not null default 0,
  answer_status int,
  answer_text text,
  error text,
  -- Since it was asked for, first or by a replay.
  pending_since timestamptz not null default now(),
  attempted_at timestamptz,
  settled_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (tenant_id, event_id, endpoint_id),
  foreign key (tenant_id, endpoint_id) references webhook_endpoints (tenant_id, id) on delete cascade
);
create index webhook_deliveries_age on webhook_deliveries (created_at);
create index webhook_deliveries_log on webhook_deliveries (tenant_id, endpoint_id, seq);
