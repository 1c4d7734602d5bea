-- Tools an agent may call while it answers. The secret is sealed before it gets here.
create table tools (
  id text primary key,
  tenant_id text not null,
  agent_id text not null,
  name text not null,
  definition jsonb not null,
  secret text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (agent_id, name),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index tools_tenant on tools (tenant_id);
