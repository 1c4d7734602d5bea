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
  created_at timestamptz not null default now(),
  used_at timestamptz not null default now(),
  primary key (tenant_id, issuer, subject),
  unique (tenant_id, user_id, issuer),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);

-- What people tell their sessions apart by. The id is no secret.
alter table user_sessions add column id text not null default 'ses_' || replace(gen_random_uuid()::text, '-', '');
alter table user_sessions add column method text not null default 'password';
alter table user_sessions add column address text;
alter table user_sessions add column device text;
alter table user_sessions add column used_at timestamptz not null default now();
create unique index user_sessions_id on user_sessions (tenant_id, user_id, id);
