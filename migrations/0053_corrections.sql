-- Where the search for passages that contradict or repeat each other stands: behind the chunk `chunk_id` of those that went
-- live with `version`.
create table passage_scans (
  tenant_id text not null,
  agent_id text not null,
  version bigint not null default 0,
  chunk_id text not null default '',
  -- When it was last the agent's turn, and when its unchanged pages were last looked at.
  touched_at timestamptz,
  stale_at timestamptz,
  primary key (tenant_id, agent_id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- Statements by some of their words: two that say nearly the same have one of them in common.
create table passage_statements (
  tenant_id text not null,
  agent_id text not null,
  anchor bigint not null,
  chunk_id text not null,
  place int not null,
  primary key (tenant_id, agent_id, anchor, chunk_id, place),
  foreign key (tenant_id, chunk_id) references chunks (tenant_id, id) on delete cascade
);
create index passage_statements_chunk on passage_statements (tenant_id, chunk_id);

-- What was found; it goes with the passages.
create table passage_findings (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  kind text not null check (kind in ('contradiction', 'duplicate', 'stale')),
  chunk_id text not null,
  -- Null for one that is stale.
  other_chunk_id text,
  -- The statements that contradict each other.
  said text,
  other_said text,
  reasons jsonb not null,
  weight float8 not null,
  found_at timestamptz not null default now(),
  dismissed_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, chunk_id) references chunks (tenant_id, id) on delete cascade,
  foreign key (tenant_id, other_chunk_id) references chunks (tenant_id, id) on delete cascade
);
create index passage_findings_agent on passage_findings (tenant_id, agent_id, weight desc, id);
create index passage_findings_chunk on passage_findings (tenant_id, chunk_id);
create index passage_findings_other on passage_findings (tenant_id, other_chunk_id) where other_chunk_id is not null;

-- Which language the question is in, as far as its words tell (ISO 639-1).
alter table agent_runs add column language text;

-- What a model is to judge a reply by.
alter table test_cases add column criterion text;

-- A curated answer that is tried beside those that are live: {"question", "answer"}.
alter table experiments add column curated jsonb;

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
