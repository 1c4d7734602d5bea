-- Tenants, what they may use, and who works for them.
create table tenants (
  id text primary key,
  name text not null,
  created_at timestamptz not null default now()
);

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
  updated_at timestamptz not null default now(),
  check ((period_start is null) = (period_end is null)),
  check (period_start < period_end)
);

create table users (
  id text primary key,
  tenant_id text not null references tenants on delete cascade,
  -- Lower-cased and trimmed before it gets here; the check takes ASCII alone, since languages differ about the rest.
  email text not null check (email = lower(email collate "C")),
  password_hash text not null,
  role text not null check (role in ('owner', 'admin', 'agent', 'viewer')),
  created_at timestamptz not null default now(),
  unique (email)
);
create index users_tenant on users (tenant_id, id);

-- The cookie holds a random token; only its hash is stored.
create table user_sessions (
  token_hash bytea primary key,
  user_id text not null references users on delete cascade,
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index user_sessions_user on user_sessions (user_id);
create index user_sessions_expiry on user_sessions (expires_at);

create table login_failures (
  id bigint generated always as identity primary key,
  email text not null,
  address text not null,
  at timestamptz not null default now()
);
create index login_failures_recent on login_failures (email, address, at);
create index login_failures_at on login_failures (at);

create table agents (
  id text primary key,
  tenant_id text not null references tenants on delete cascade,
  name text not null,
  instructions text not null default '',
  model text,
  greeting text,
  top_k int not null default 6 check (top_k between 1 and 20),
  min_score float8 check (min_score between 0 and 1),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (tenant_id, id)
);

-- API keys: 256 random bits, so a plain SHA-256 is enough. agent_id is null for an org-scoped key.
create table api_keys (
  id text primary key,
  tenant_id text not null references tenants on delete cascade,
  agent_id text,
  name text not null,
  prefix text not null,
  secret_hash bytea not null unique,
  scope text not null check (scope in ('agent', 'org')),
  permissions text[] not null,
  allowed_origins text[] not null default '{}',
  status text not null default 'ACTIVE' check (status in ('ACTIVE', 'INACTIVE', 'REVOKED')),
  expires_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  check ((scope = 'org') = (agent_id is null)),
  check (cardinality(permissions) > 0),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index api_keys_agent on api_keys (agent_id, id);
create index api_keys_tenant on api_keys (tenant_id, id);
