-- Whoever is not active was switched off by the provider: nothing lets them in.
alter table users add column active boolean not null default true;
-- What the provider's provisioning knows them by.
alter table users add column external_id text;
create unique index users_external on users (tenant_id, external_id) where external_id is not null;

-- What a provider provisions with: 256 random bits, so a plain SHA-256 is enough. A tenant has one.
create table scim_tokens (
  tenant_id text primary key references sso_connections on delete cascade,
  prefix text not null,
  secret_hash bytea not null unique,
  created_at timestamptz not null default now(),
  used_at timestamptz
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
