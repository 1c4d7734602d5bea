-- What an agent is, once for every change: a row never changes. `agents` holds the settings of the version that is published, so
-- that a turn reads nothing else. Who adds a setting adds it to `settings` of the versions that are there.
create table agent_versions (
  tenant_id text not null,
  agent_id text not null,
  version int not null check (version > 0),
  settings jsonb not null,
  note text,
  -- An actor as in the audit trail; null for what the service made itself.
  author jsonb,
  created_at timestamptz not null default now(),
  primary key (agent_id, version),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- `version` counts them; a share of the conversations may have another one than the published.
alter table agents
  add column published_version int not null default 1,
  add column split_version int,
  add column split_share float8 not null default 0 check (split_share between 0 and 1);

update agents set published_version = version;
insert into agent_versions (tenant_id, agent_id, version, settings, created_at)
select tenant_id, id, version, jsonb_build_object(
  'name', name, 'instructions', instructions, 'model', model, 'greeting', greeting, 'topK', top_k, 'minScore', min_score,
  'tools', tools, 'mode', grounding_mode, 'unsupported', unsupported, 'contextTokens', context_tokens,
  'maxSearches', max_searches), updated_at
from agents;

-- Null for runs from before there were versions.
alter table agent_runs add column agent_version int;
