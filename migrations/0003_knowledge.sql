-- Knowledge: sources, how they are read, their documents, chunks and vectors, and what was found in them.

-- Originals in the artifact store. They are shared by content, so removing one and storing the same bytes again for
-- another source must not meet: both lock its row here. What has a row and no source is removed by a sweep.
create table artifacts (
  ref text primary key,
  -- Somebody is removing the bytes, and has until then.
  removing_until timestamptz
);

-- Somebody is storing the bytes for a source that is not there yet, and has until then.
create table artifact_claims (
  id text primary key,
  ref text not null references artifacts on delete cascade,
  expires_at timestamptz not null
);
create index artifact_claims_ref on artifact_claims (ref);

-- A source's chunks belong to a generation; the live one is named by sources.live_generation and changes in one
-- transaction, so old chunks answer until new ones replace them.
create table sources (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  type text not null,
  name text not null,
  -- Keys with a scope of labels read the sources that have one of them.
  labels jsonb not null default '[]',
  status text not null default 'PENDING' check (status in ('PENDING', 'PROCESSING', 'READY', 'FAILED')),
  config jsonb not null,
  -- Of the documents and chunks that answer.
  live_generation bigint not null default 0,
  last_synced_at timestamptz,
  last_error text,
  -- The last reading that the schedule asked for, and until when it asks for none because the plan has no job left.
  refreshed_at timestamptz,
  refresh_held_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index sources_artifact on sources ((config ->> 'artifact')) where config ->> 'artifact' is not null;
create index sources_refresh on sources ((config ->> 'refresh'), last_synced_at)
  where config ->> 'refresh' in ('daily', 'weekly');
create index sources_agent on sources (tenant_id, agent_id, id);
-- Whether an agent has answers that somebody wrote is asked at the start of every turn.
create index sources_curated on sources (tenant_id, agent_id) where type = 'QA';
create statistics sources_of_tenant (dependencies) on tenant_id, agent_id from sources;

-- True when a source meets all of `filters` (null: none), each an object of conditions; one that is left out is met by
-- all, and one that is not understood by none. Both search engines ask it.
create function source_is_visible(id text, type text, labels jsonb, metadata jsonb, filters jsonb) returns boolean
language sql immutable parallel safe as $$
  select filters is null or not exists (
    select from jsonb_array_elements(filters) as f (filter)
    where (
      (filter -> 'sourceIds' is null or filter -> 'sourceIds' ? id)
      and (filter -> 'sourceTypes' is null or filter -> 'sourceTypes' ? type)
      and (filter -> 'metadata' is null or filter -> 'metadata' = '{}' or metadata @> (filter -> 'metadata'))
      and (
        filter -> 'labels' is null or labels = '[]'
        or exists (select from jsonb_array_elements_text(labels) as l (label) where filter -> 'labels' ? label)
      )
    ) is not true
  )
$$;

-- Sources that a registered reader reads. What of their settings is secret stands apart from the config, sealed, so
-- that nothing that shows a config can show it.
create table source_secrets (
  tenant_id text not null,
  source_id text not null,
  -- A JSON object of the secret settings by name, sealed.
  sealed text not null,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);

-- How far such a source is read. A pass is read step by step; what a step read and where the next one begins are
-- written together, so that a pass goes on where it stopped.
create table source_readings (
  tenant_id text not null,
  source_id text not null,
  -- What the last finished pass left for the next one; null before the first.
  cursor jsonb,
  -- Of the settings and labels that the cursor belongs to: with others, everything is read anew.
  digest text,
  -- The generation that the running pass builds, with its own digest, where its next step begins, and the steps and
  -- lines of the ledger so far; null between passes.
  generation bigint,
  pass_digest text,
  position jsonb,
  steps int not null default 0,
  lines int not null default 0,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);

create table ingestion_jobs (
  tenant_id text not null,
  id text not null,
  source_id text not null,
  agent_id text not null,
  -- The generation this job builds; kept over attempts, so that a new attempt clears what the dead one left.
  generation bigint generated always as identity,
  type text not null check (type in ('INGEST', 'REINDEX')),
  status text not null default 'QUEUED' check (status in ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  progress int not null default 0 check (progress between 0 and 100),
  chunks_created int,
  error text,
  -- What went wrong in each attempt, first to last: [{"at": …, "error": …}].
  attempt_errors jsonb not null default '[]',
  started_at timestamptz,
  completed_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
create index ingestion_jobs_source on ingestion_jobs (tenant_id, source_id, generation desc);
create unique index ingestion_jobs_one_queued on ingestion_jobs (tenant_id, source_id) where status = 'QUEUED';
create unique index ingestion_jobs_one_running on ingestion_jobs (tenant_id, source_id) where status = 'RUNNING';

-- The crawl ledger: one line for each address that a job met, in the order in which it was settled, with why it is or
-- is not part of the knowledge; and what the next sync compares, so that an unchanged page is not read again. Kept for
-- the generation that answers, for the latest job and for the running one.
create table crawl_entries (
  tenant_id text not null,
  source_id text not null,
  generation bigint not null,
  place int not null,
  url text not null,
  depth int not null,
  parent text,
  outcome text not null check (outcome in ('indexed', 'unchanged', 'skipped', 'failed', 'redirected')),
  reason text,
  message text,
  http_status int,
  -- The document it became or repeats, or where it redirects to.
  target text,
  etag text,
  last_modified text,
  -- The `lastmod` of the sitemap that lists it, as it is written there.
  listed_at text,
  fetched_at timestamptz not null,
  -- Links of the page, null where they are not kept: without them it is always fetched in full.
  links jsonb,
  -- Of its words: exactly these (SHA-256), and nearly these.
  digest text,
  fingerprint text,
  -- Of the code that read it: what a later version would read differently is read again.
  revision int not null,
  primary key (tenant_id, source_id, generation, place),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);

create table documents (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  source_id text not null,
  generation bigint not null,
  uri text not null,
  title text not null,
  content_hash bytea not null,
  -- How its chunks are indexed. Those of an older format are indexed anew in the background, and found as they were
  -- until then.
  index_format smallint not null default 1,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  unique (tenant_id, source_id, generation, uri),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
create index documents_outdated on documents (agent_id, id) where index_format < 2;
create statistics documents_of_tenant (dependencies) on tenant_id, agent_id, source_id from documents;

create table chunks (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  source_id text not null,
  generation bigint not null,
  document_id text not null,
  ordinal int not null,
  heading text not null default '',
  content text not null,
  content_hash bytea not null,
  -- Lexemes and positions are made in TypeScript (src/search), so that every engine ranks alike.
  tsv tsvector not null,
  length int not null,
  -- The agent's index version at which the chunk went live; null while its generation is being built.
  version bigint,
  -- Chunks that are not English have other index terms, and no vector of a model that knows only English.
  english boolean not null default true,
  primary key (tenant_id, id),
  unique (tenant_id, document_id, ordinal),
  foreign key (tenant_id, document_id) references documents (tenant_id, id) on delete cascade
);
create index chunks_agent_version on chunks (tenant_id, agent_id, version);
create index chunks_source on chunks (tenant_id, source_id, generation);
-- Whether an agent has any such chunk is asked at every search.
create index chunks_not_english on chunks (tenant_id, agent_id) where not english;
create statistics chunks_of_tenant (dependencies) on tenant_id, agent_id, source_id, document_id from chunks;

-- Vectors stand apart from the text: a new embedding profile is built beside the old one.
create table chunk_embeddings (
  tenant_id text not null,
  chunk_id text not null,
  profile text not null,
  agent_id text not null,
  version bigint not null,
  -- float32, little-endian
  embedding bytea not null,
  primary key (tenant_id, chunk_id, profile),
  foreign key (tenant_id, chunk_id) references chunks (tenant_id, id) on delete cascade
);
create index chunk_embeddings_agent on chunk_embeddings (tenant_id, agent_id, profile, version);
create statistics chunk_embeddings_of_tenant (dependencies) on tenant_id, agent_id from chunk_embeddings;

-- One row an agent: its index version, raised (and the row locked) by every transaction that changes what is
-- searchable.
create table agent_stats (
  tenant_id text not null,
  agent_id text not null,
  chunk_count bigint not null default 0,
  length_sum bigint not null default 0,
  version bigint not null default 0,
  -- Vectors of several profiles may stand side by side; those of `profile` answer. Null: no vector was stored yet.
  profile text,
  profile_since timestamptz,
  primary key (tenant_id, agent_id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- The profile that every agent is moved to: that of the process which started last. One row.
create table embedding_target (
  one boolean primary key default true check (one),
  profile text not null,
  since timestamptz not null default now()
);

-- Why a source has no vectors of a profile, in words for its owner; gone as soon as it has.
create table embedding_failures (
  tenant_id text not null,
  source_id text not null,
  profile text not null,
  message text not null,
  failed_at timestamptz not null default now(),
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);

-- Where the search for passages that contradict or repeat each other stands: behind the chunk `chunk_id` of those that
-- went live with `version`.
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
