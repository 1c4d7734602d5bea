-- Tokens of people for the management interface: 256 random bits, so a plain SHA-256 is enough. What one may do is the lesser
-- of its scopes and of what the role of its maker allows, which is read with each request.
create table access_tokens (
  id text primary key,
  tenant_id text not null references tenants on delete cascade,
  user_id text not null references users on delete cascade,
  name text not null,
  prefix text not null,
  secret_hash bytea not null unique,
  scopes text[] not null check (cardinality(scopes) > 0),
  revoked_at timestamptz,
  expires_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now()
);
create index access_tokens_tenant on access_tokens (tenant_id, id);
create index access_tokens_user on access_tokens (user_id);
