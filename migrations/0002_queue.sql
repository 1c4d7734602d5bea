-- The durable job table: enqueue joins the caller's transaction, a claim takes a lease, nothing lives only in memory.
create table queue_jobs (
  id text primary key,
  queue text not null,
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
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create index queue_jobs_due on queue_jobs (queue, run_at, seq) where state = 'waiting';
create index queue_jobs_leases on queue_jobs (queue, lease_until) where state = 'active';
create index queue_jobs_serial on queue_jobs (queue, serial_key, seq) where state in ('waiting', 'active') and serial_key is not null;
-- Two claims of jobs that share a key cannot both win, whatever each of them could see.
create unique index queue_jobs_one_active on queue_jobs (queue, serial_key) where state = 'active' and serial_key is not null;
create index queue_jobs_finished on queue_jobs (queue, state, finished_at desc, seq desc) where state in ('completed', 'failed');
