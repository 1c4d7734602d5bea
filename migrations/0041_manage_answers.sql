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
