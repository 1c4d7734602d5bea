-- Which turn an Idempotency-Key has begun, for 24 hours. The answer is the turn's own, so nothing of it is kept here. A key of
-- the API belongs to one agent; the host of a library has none, and its keys are the agent's.
create table turn_claims (
  agent_id text not null references agents on delete cascade,
  key_id text not null,
  idempotency_key text not null,
  -- SHA-256 of the request.
  request_hash text not null,
  run_id text not null,
  created_at timestamptz not null default now(),
  primary key (agent_id, key_id, idempotency_key)
);
create index turn_claims_age on turn_claims (created_at);
