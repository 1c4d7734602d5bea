-- Jobs, the audit trail, mails, retention, repeated requests, and what processes tell each other.

-- The durable job table: enqueue joins the caller's transaction, a claim takes a lease, nothing lives only in memory.
create table queue_jobs (
  id text primary key,
  queue text not null,
  -- Whose a job is: workers take the jobs of owners in turns.
  owner text not null default '',
  payload jsonb not null,
  state text not null default 'waiting' check (state in ('waiting', 'active', 'completed', 'failed')),
  -- Jobs of one queue that share a serial key run one at a time, in order.
  serial_key text,
  seq bigint generated always as identity,
  attempts int not null default 0,
  max_attempts int not null check (max_attempts > 0),
  run_at timestamptz not null default now(),
  lease_token text,
  lease_until timestamptz,
  last_error text,
  -- What ended each attempt: [{attempt, at, message}], oldest first.
  errors jsonb not null default '[]',
  finished_at timestamptz,
  created_at timestamptz not null default now()
);
create index queue_jobs_due on queue_jobs (queue, run_at, seq) where state = 'waiting';
create index queue_jobs_leases on queue_jobs (queue, lease_until) where state = 'active';
create index queue_jobs_serial on queue_jobs (queue, serial_key, seq)
  where state in ('waiting', 'active') and serial_key is not null;
-- Two claims of jobs that share a key cannot both win, whatever each of them could see.
create unique index queue_jobs_one_active on queue_jobs (queue, serial_key)
  where state = 'active' and serial_key is not null;
create index queue_jobs_finished on queue_jobs (queue, state, finished_at desc, seq desc)
  where state in ('completed', 'failed');
create index queue_jobs_owners on queue_jobs (queue, owner, run_at, seq) where state = 'waiting';

-- A process that runs turns renews its row; runs of a process whose row has expired are dead.
create table instances (
  id text primary key,
  lease_until timestamptz not null
);

-- Who did what, kept as long as the tenant is.
create table audit_entries (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  at timestamptz not null default now(),
  actor_type text not null,
  actor_id text not null,
  action text not null,
  target text not null,
  request_id text not null,
  primary key (tenant_id, id)
);

-- Every mail the service hands to a mail server, and what was told of it later.
create table email_logs (
  id text primary key,
  -- Null for mails to whoever runs the service.
  tenant_id text references tenants on delete cascade,
  recipient text not null,
  -- What it was about: 'job_failed', …
  kind text not null,
  -- 'queued' until the mail server has answered, then 'sent' or 'failed'; later as the provider's events say.
  status text not null default 'queued',
  -- By which the provider's events name it.
  provider_message_id text,
  -- Why it was not sent, without addresses and secrets.
  last_error text,
  sent_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index email_logs_provider on email_logs (provider_message_id) where provider_message_id is not null;
create index email_logs_tenant on email_logs (tenant_id, id);
create index email_logs_age on email_logs (created_at);

-- How long a tenant keeps what. A limit that is null keeps for ever, and so does a tenant without a row.
create table tenant_retention (
  tenant_id text primary key references tenants on delete cascade,
  -- Days since the last message of a conversation, the end of a run or job, the entry, the mail, the event.
  conversations int check (conversations > 0),
  runs int check (runs > 0),
  audit_entries int check (audit_entries > 0),
  email_logs int check (email_logs > 0),
  event_deliveries int check (event_deliveries > 0),
  ingestion_jobs int check (ingestion_jobs > 0),
  -- When what is too old is looked for next; later while a process is at it, so that one alone is.
  due_at timestamptz not null default now(),
  -- The id of the last conversation that was looked at; empty at the beginning of a round.
  conversations_seen text not null default '',
  updated_at timestamptz not null default now()
);
create index tenant_retention_due on tenant_retention (due_at);

-- Answers to repeated creations, for 24 hours, per API key.
create table idempotency_keys (
  tenant_id text not null,
  -- Keys of creations belong to the agent too: the host of a library has no row in api_keys.
  agent_id text not null,
  key_id text not null,
  idempotency_key text not null,
  response jsonb not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, agent_id, key_id, idempotency_key),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index idempotency_keys_age on idempotency_keys (created_at);

-- Answers of the management interface to requests with an Idempotency-Key, for a day.
create table manage_answers (
  tenant_id text not null references tenants on delete cascade,
  token_id text not null,
  idempotency_key text not null,
  -- Of the method, the address and the body.
  request_hash bytea not null,
  -- Sealed, for it may hold a secret that is shown once. Null until the request has ended.
  answer text,
  created_at timestamptz not null default now(),
  primary key (tenant_id, token_id, idempotency_key)
);
create index manage_answers_age on manage_answers (created_at);

-- What limited keys have used, by part of the window, the last of them the part of number `part`. Losing it in a crash
-- only gives some requests back. A row is written with every request, so there is room for its next version beside it
-- and no index on what changes.
create unlogged table rate_counters (
  name text primary key,
  part bigint not null,
  counts int[] not null,
  granted boolean not null,
  expires_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Until when a provider asked every process to leave it alone.
create table provider_pauses (
  provider text primary key,
  until timestamptz not null
);

-- Names of the master secrets under which the database has been served: without one of them what is sealed cannot be
-- read.
create table master_keys (
  id text primary key,
  noted_at timestamptz not null default now()
);
