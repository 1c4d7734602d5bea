-- Knowledge: sources, their ingestion jobs, documents and chunks. A source's chunks belong to a generation; the live one
-- is named by sources.live_generation and changes in one transaction, so old chunks answer until new ones replace them.
create table sources (
  id text primary key,
  tenant_id text not null,
  agent_id text not null,
  type text not null check (type in ('URL', 'SITEMAP', 'FILE', 'IMAGE', 'BULK_UPLOAD')),
  name text not null,
  status text not null default 'PENDING' check (status in ('PENDING', 'PROCESSING', 'READY', 'FAILED')),
  config jsonb not null,
  live_generation bigint not null default 0,
  last_synced_at timestamptz,
  last_error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index sources_agent on sources (agent_id, id);
create index sources_tenant on sources (tenant_id);

create table ingestion_jobs (
  id text primary key,
  source_id text not null references sources on delete cascade,
  agent_id text not null,
  type text not null check (type in ('INGEST', 'REINDEX')),
  status text not null default 'QUEUED' check (status in ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  progress int not null default 0 check (progress between 0 and 100),
  chunks_created int,
  error text,
  -- The generation this job builds; kept over attempts, so that a new attempt clears what the dead one left.
  generation bigint not null generated always as identity,
  started_at timestamptz,
  completed_at timestamptz,
  created_at timestamptz not null default now()
);
create index ingestion_jobs_source on ingestion_jobs (source_id, generation desc);
create unique index ingestion_jobs_one_queued on ingestion_jobs (source_id) where status = 'QUEUED';
create unique index ingestion_jobs_one_running on ingestion_jobs (source_id) where status = 'RUNNING';

create table documents (
  id text primary key,
  agent_id text not null,
  source_id text not null references sources on delete cascade,
  generation bigint not null,
  uri text not null,
  title text not null,
  content_hash bytea not null,
  created_at timestamptz not null default now(),
  unique (source_id, generation, uri)
);

create table chunks (
  id text primary key,
  agent_id text not null,
  source_id text not null,
  generation bigint not null,
  document_id text not null references documents on delete cascade,
  ordinal int not null,
  heading text not null default '',
  content text not null,
  content_hash bytea not null,
  -- Lexemes and positions are made in TypeScript (src/search), so that every engine ranks alike.
  tsv tsvector not null,
  length int not null,
  -- The agent's index version at which the chunk went live; null while its generation is being built.
  version bigint,
  unique (document_id, ordinal)
);
create index chunks_agent_version on chunks (agent_id, version);
create index chunks_source on chunks (source_id, generation);

-- Vectors stand apart from the text: a new embedding profile is built beside the old one.
create table chunk_embeddings (
  chunk_id text not null references chunks on delete cascade,
  profile text not null,
  agent_id text not null,
  version bigint not null,
  -- float32, little-endian
  embedding bytea not null,
  primary key (chunk_id, profile)
);
create index chunk_embeddings_agent on chunk_embeddings (agent_id, profile, version);

-- One row an agent: its index version, raised (and the row locked) by every transaction that changes what is searchable.
create table agent_stats (
  agent_id text primary key references agents on delete cascade,
  chunk_count bigint not null default 0,
  length_sum bigint not null default 0,
  version bigint not null default 0
);

-- Answers to repeated creations, for 24 hours, per API key.
create table idempotency_keys (
  key_id text not null references api_keys on delete cascade,
  idempotency_key text not null,
  response jsonb not null,
  created_at timestamptz not null default now(),
  primary key (key_id, idempotency_key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
