-- Agents, and what belongs to one: versions, keys, tools, its widget and its accounts at channels.

-- With the settings of the published version.
create table agents (
  id text primary key,
  tenant_id text not null references tenants on delete cascade,
  name text not null,
  -- What is edited as a whole has a version: every change raises it, and one that was made from an older version is
  -- refused. A share of the conversations may have another version than the published.
  version int not null default 1,
  published_version int not null default 1,
  split_version int,
  split_share float8 not null default 0 check (split_share between 0 and 1),
  instructions text not null default '',
  greeting text,
  model text,
  -- Tools of the process that an agent may call, by their names; those that are set up with an address stand in
  -- `tools`.
  tools text[] not null default '{}',
  top_k int not null default 6 check (top_k between 1 and 20),
  min_score float8 check (min_score between 0 and 1),
  -- How it keeps to its sources: the tokens of them that its model is shown, whether it may answer without them, what
  -- becomes of a reply that they do not support, and how often its model may search again in a turn.
  context_tokens int not null default 6000 check (context_tokens between 500 and 32000),
  grounding_mode text not null default 'strict',
  unsupported text not null default 'annotate',
  max_searches int not null default 0 check (max_searches between 0 and 8),
  -- What of personal data is kept from the model of an agent, its tools and its traces; null for nothing.
  masking jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (tenant_id, id)
);

-- What an agent is, once for every change: a row never changes. `agents` holds the settings of the version that is
-- published, so that a turn reads nothing else. Who adds a setting adds it to `settings` of the versions that are
-- there.
create table agent_versions (
  tenant_id text not null,
  agent_id text not null,
  version int not null check (version > 0),
  settings jsonb not null,
  note text,
  -- An actor as in the audit trail; null for what the service made itself.
  author jsonb,
  created_at timestamptz not null default now(),
  primary key (tenant_id, agent_id, version),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- What an agent's version has to reach before it is published; nothing without a row.
create table publish_thresholds (
  tenant_id text not null,
  agent_id text not null,
  -- Share of the cases that have to pass; null for any.
  min_pass float8 check (min_pass between 0 and 1),
  -- Whether it may not be worse than what is published.
  no_regression boolean not null,
  primary key (tenant_id, agent_id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- API keys: 256 random bits, so a plain SHA-256 is enough. agent_id is null for an org-scoped key.
create table api_keys (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  agent_id text,
  name text not null,
  version int not null default 1,
  prefix text not null,
  secret_hash bytea not null unique,
  scope text not null check (scope in ('agent', 'org')),
  permissions text[] not null,
  -- The sources that it may read, by labels and ids. Null: all.
  source_scope jsonb,
  allowed_origins text[] not null default '{}',
  -- How often it may be used: both or neither, and neither leaves it to the server's default.
  rate_requests int check (rate_requests > 0),
  rate_window int check (rate_window > 0),
  status text not null default 'ACTIVE' check (status in ('ACTIVE', 'INACTIVE', 'REVOKED')),
  expires_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  check ((scope = 'org') = (agent_id is null)),
  check (cardinality(permissions) > 0),
  constraint api_keys_rate check ((rate_requests is null) = (rate_window is null)),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index api_keys_agent on api_keys (tenant_id, agent_id, id);

-- The widget of an agent: how it looks and what it says on pages. It is no part of the agent's versions: a change of
-- colour is no change of how questions are answered.
create table agent_widgets (
  tenant_id text not null,
  agent_id text not null,
  -- What a page names it by; its fingerprint is that of the key. Public: whoever opens the page reads it.
  public_id text not null unique,
  -- What it may do and from where; whoever revokes it takes the widget off all pages.
  key_id text not null,
  look jsonb not null,
  version int not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, agent_id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, key_id) references api_keys (tenant_id, id) on delete cascade
);
create index agent_widgets_key on agent_widgets (tenant_id, key_id);

-- Tools an agent may call while it answers. The secret is sealed before it gets here.
create table tools (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  name text not null,
  version int not null default 1,
  definition jsonb not null,
  secret text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id),
  unique (tenant_id, agent_id, name),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- An agent's account at a provider. At most one active configuration an account: routing needs exactly one.
create table channels (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  version int not null default 1,
  channel text not null,
  -- By which the provider names the account: WhatsApp's phone number id, Messenger's Page id.
  external_id text not null,
  -- What the provider told of the account when it was activated.
  profile jsonb not null default '{}',
  -- Sealed (capabilities/SecretBox); never leaves the process.
  access_token text not null,
  -- Sealed (capabilities/SecretBox): JSON from names to secrets. Null where the channel asks for none.
  secrets text,
  active boolean not null default true,
  -- Calls of the account's provider that failed since the last one that worked, and since when that has been reported.
  failures int not null default 0,
  failing_since timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create unique index channels_account on channels (channel, external_id) where active;
create index channels_agent on channels (tenant_id, agent_id, id);
