-- Experiments: the test cases of an agent, or turns that are stored, asked of one set of its settings, and what came of each.
create table experiments (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  -- Whose settings they are; null where they are those of no version.
  version int,
  settings jsonb not null,
  -- SHA-256 of what a reply depends on of the settings, and of the cases: what a publish is measured by. Null cases: turns.
  settings_hash bytea not null,
  cases_hash bytea,
  -- Stays when that is deleted: an archive takes no table that refers to itself.
  baseline_id text,
  max_tokens bigint not null check (max_tokens > 0),
  status text not null default 'queued' check (status in ('queued', 'running', 'complete', 'cancelled', 'failed')),
  -- Why it failed.
  reason text,
  author jsonb,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index experiments_agent on experiments (tenant_id, agent_id, id);
create index experiments_open on experiments (tenant_id) where status in ('queued', 'running');

create table experiment_results (
  tenant_id text not null,
  experiment_id text not null,
  position int not null check (position >= 0),
  -- What it was made from, and goes with: what a person asked goes with the person.
  case_id text,
  run_id text,
  -- The case as it was then.
  asked jsonb not null,
  -- Null until it has been asked.
  result jsonb,
  primary key (tenant_id, experiment_id, position),
  foreign key (tenant_id, experiment_id) references experiments (tenant_id, id) on delete cascade,
  foreign key (tenant_id, case_id) references test_cases (tenant_id, id) on delete cascade,
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade
);
create index experiment_results_case on experiment_results (tenant_id, case_id) where case_id is not null;
create index experiment_results_run on experiment_results (tenant_id, run_id) where run_id is not null;

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
