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

-- Keys of creations belong to the agent too: the host of a library has no row in api_keys.
alter table idempotency_keys add column agent_id text references agents on delete cascade;
update idempotency_keys i set agent_id = k.agent_id from api_keys k where k.id = i.key_id;
delete from idempotency_keys where agent_id is null;
alter table idempotency_keys
  alter column agent_id set not null,
  drop constraint idempotency_keys_key_id_fkey,
  drop constraint idempotency_keys_pkey,
  add primary key (agent_id, key_id, idempotency_key);
