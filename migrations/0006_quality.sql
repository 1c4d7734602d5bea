-- What an agent is measured by, and what is done about turns that went wrong.

-- Questions that an agent is measured by, with what is expected of its replies.
create table test_cases (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  question text not null,
  expect_sources jsonb not null,
  expect_facts jsonb not null,
  -- Null: the reply may be either.
  expect_refusal boolean,
  -- What a model is to judge a reply by.
  criterion text,
  note text,
  origin text not null check (origin in ('written', 'run', 'feedback', 'human', 'file')),
  -- The run that it was made from: what a person asked goes with the person.
  run_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade
);
create index test_cases_run on test_cases (tenant_id, run_id) where run_id is not null;
create index test_cases_agent on test_cases (tenant_id, agent_id, id);

-- Experiments: the test cases of an agent, or turns that are stored, asked of one set of its settings, and what came of
-- each.
create table experiments (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  -- Whose settings they are; null where they are those of no version.
  version int,
  settings jsonb not null,
  -- A curated answer that is tried beside those that are live: {"question", "answer"}.
  curated jsonb,
  -- SHA-256 of what a reply depends on of the settings, and of the cases: what a publish is measured by. Null cases:
  -- turns.
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

-- Curated answers to what went wrong, drafted and not yet approved, and what became of them.
create table corrections (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  -- The turn that it was made from: what a person asked goes with the person.
  run_id text,
  -- The turn of the conversation in which somebody of the team gave the answer.
  reply_run_id text,
  -- Turns that went wrong, which the preview asks again.
  run_ids jsonb not null,
  question text not null,
  answer text not null,
  origin text not null check (origin in ('human', 'model', 'written')),
  -- Of what is written now; null after a change.
  experiment_id text,
  source_id text,
  case_id text,
  author jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  approved_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade,
  foreign key (tenant_id, reply_run_id) references agent_runs (tenant_id, id) on delete cascade
);
create index corrections_agent on corrections (tenant_id, agent_id, id);
create index corrections_reply_run on corrections (tenant_id, reply_run_id) where reply_run_id is not null;
create index corrections_run on corrections (tenant_id, run_id) where run_id is not null;

-- When questions without an answer are looked for next, of tenants that want to be told.
create table gap_searches (
  tenant_id text primary key references tenants on delete cascade,
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
