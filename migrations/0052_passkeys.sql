-- Public keys of authenticators that people sign in with. An authenticator's own id of a key is unique in the installation, and
-- leads to the person.
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
  created_at timestamptz not null default now(),
  used_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create index passkeys_user on passkeys (tenant_id, user_id);
