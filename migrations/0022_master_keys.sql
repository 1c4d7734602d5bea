-- Names of the master secrets under which the database has been served: without one of them what is sealed cannot be read.
create table master_keys (
  id text primary key,
  noted_at timestamptz not null default now()
);
