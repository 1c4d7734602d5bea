-- What a tenant's data takes, counted in the background about once a day.
create table tenant_storage (
  tenant_id text primary key references tenants on delete cascade,
  -- Bytes by kind, as of counted_at; null before the first count.
  bytes jsonb,
  counted_at timestamptz,
  -- Of the running count: the list that it reads, the last row of it that it has read, and the sums so far.
  list int not null default 0,
  seen text not null default '',
  sums jsonb not null default '{}',
  due_at timestamptz not null default now()
);
create index tenant_storage_due on tenant_storage (due_at);

-- Null: not known yet.
alter table artifacts add column bytes bigint;
