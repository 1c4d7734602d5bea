-- Who did what, kept as long as the tenant is.
create table audit_entries (
  id text primary key,
  tenant_id text not null references tenants on delete cascade,
  at timestamptz not null default now(),
  actor_type text not null,
  actor_id text not null,
  action text not null,
  target text not null,
  request_id text not null
);
create index audit_entries_tenant on audit_entries (tenant_id, id desc);

-- Somebody asked that the run stop; the process that runs it sees to it.
alter table agent_runs add column stop_requested boolean not null default false;
create index agent_runs_to_stop on agent_runs (instance_id) where status = 'running' and stop_requested;
