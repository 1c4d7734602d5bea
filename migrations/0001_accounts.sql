-- Tenants, the people who work for them, and how they sign in.

create table tenants (
  id text primary key,
  name text not null,
  -- Somebody has said that the guided start is not to be shown first any more.
  start_dismissed_at timestamptz,
  created_at timestamptz not null default now()
);

create table users (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  -- Lower-cased and trimmed before it gets here; the check takes ASCII alone, since languages differ about the rest.
  email text not null unique check (email = lower(email collate "C")),
  -- Null until its user has chosen one.
  password_hash text,
  -- The member who chose it for the user; null: the user did, or the operator. It is no reference: a table of archives
  -- must not refer to itself.
  password_by text,
  role text not null,
  -- Whoever is not active was switched off by the provider: nothing lets them in.
  active boolean not null default true,
  -- What the provider's provisioning knows them by.
  external_id text,
  -- What was written before this moment counts as read; what was read since stands in conversation_reads.
  inbox_read_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
create index users_password_by on users (tenant_id, password_by) where password_by is not null;
create unique index users_external on users (tenant_id, external_id) where external_id is not null;

-- The cookie holds a random token; only its hash is stored.
create table user_sessions (
  tenant_id text not null,
  -- What people tell their sessions apart by. The id is no secret.
  id text not null default 'ses_' || replace(gen_random_uuid()::text, '-', ''),
  token_hash bytea not null unique,
  user_id text not null,
  method text not null default 'password',
  address text,
  device text,
  expires_at timestamptz not null,
  used_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  primary key (tenant_id, token_hash),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create index user_sessions_expiry on user_sessions (expires_at);
create index user_sessions_user on user_sessions (tenant_id, user_id);
create unique index user_sessions_id on user_sessions (tenant_id, user_id, id);

-- Who was asked to choose a password. The token is random, so its hash is all that is stored; it is good once.
create table user_invitations (
  tenant_id text not null,
  user_id text not null,
  token_hash bytea not null unique,
  role text not null,
  -- An invitation is as good as the member who made it, for the role that the invited person had then.
  invited_by text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, user_id),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
  foreign key (tenant_id, invited_by) references users (tenant_id, id) on delete cascade
);
create index user_invitations_by on user_invitations (tenant_id, invited_by);

-- Counted by address and e-mail, so that passwords cannot be tried without end.
create table login_failures (
  id bigint primary key generated always as identity,
  email text not null,
  address text not null,
  at timestamptz not null default now()
);
create index login_failures_recent on login_failures (email, address, at);
create index login_failures_at on login_failures (at);

-- Tokens of people for the management interface: 256 random bits, so a plain SHA-256 is enough. What one may do is the
-- lesser of its scopes and of what the role of its maker allows, which is read with each request.
create table access_tokens (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  user_id text not null,
  name text not null,
  prefix text not null,
  secret_hash bytea not null unique,
  scopes text[] not null check (cardinality(scopes) > 0),
  revoked_at timestamptz,
  expires_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create index access_tokens_user on access_tokens (tenant_id, user_id);

-- Public keys of authenticators that people sign in with. An authenticator's own id of a key is unique in the
-- installation, and leads to the person.
create table passkeys (
  tenant_id text not null,
  id text not null,
  user_id text not null,
  name text not null,
  credential_id text not null unique,
  -- As COSE.
  public_key bytea not null,
  -- Of its uses, where the authenticator counts; a lower one tells of a copy.
  counter bigint not null,
  -- The authenticator keeps it in more than one place.
  backed_up boolean not null,
  used_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create index passkeys_user on passkeys (tenant_id, user_id);

-- Where the people of a tenant sign in instead of here.
create table sso_connections (
  tenant_id text primary key references tenants on delete cascade,
  issuer text not null,
  client_id text not null,
  -- Sealed.
  client_secret text not null,
  -- The provider's word on an e-mail address is taken though it does not say that it has verified it.
  trusts_email boolean not null,
  groups_claim text,
  -- [{group, role}]: a person has the highest role that one of their groups gives.
  group_roles jsonb not null,
  -- Of whom no group gives a role; null: they do not get in.
  default_role text,
  creates_people boolean not null,
  allows_passwords boolean not null default true,
  version int not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

-- A tenant claims a domain, the operator confirms that it is theirs. Of all who claim it one has it.
create table sso_domains (
  tenant_id text not null references tenants on delete cascade,
  domain text not null,
  confirmed_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (tenant_id, domain)
);
create unique index sso_domains_confirmed on sso_domains (domain) where confirmed_at is not null;

-- Who somebody is at a provider. A person has one identity at each.
create table user_identities (
  tenant_id text not null references tenants on delete cascade,
  issuer text not null,
  subject text not null,
  user_id text not null,
  used_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  primary key (tenant_id, issuer, subject),
  unique (tenant_id, user_id, issuer),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);

-- What a provider provisions with: 256 random bits, so a plain SHA-256 is enough. A tenant has one.
create table scim_tokens (
  tenant_id text primary key references sso_connections on delete cascade,
  prefix text not null,
  secret_hash bytea not null unique,
  used_at timestamptz,
  created_at timestamptz not null default now()
);

-- Groups that a provider provisions. Their names give roles as those of its tokens do.
create table scim_groups (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  name text not null,
  external_id text,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index scim_groups_name on scim_groups (tenant_id, lower(name));

create table scim_group_members (
  tenant_id text not null,
  group_id text not null,
  user_id text not null,
  primary key (tenant_id, group_id, user_id),
  foreign key (tenant_id, group_id) references scim_groups (tenant_id, id) on delete cascade,
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create index scim_group_members_user on scim_group_members (tenant_id, user_id);
