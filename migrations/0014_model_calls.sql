-- Calls of models that belong to no turn. `model_usage` counts them too, by model and together with those of turns.
create table other_model_usage (
  tenant_id text not null,
  agent_id text not null,
  period_start timestamptz not null,
  -- In UTC.
  day date not null,
  kind text not null check (kind in ('draft', 'experiment', 'image', 'judge', 'replay')),
  calls bigint not null default 0,
  unpriced_calls bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cost_nano bigint not null default 0,
  primary key (tenant_id, agent_id, period_start, day, kind),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);

-- A deleted tenant's passages cannot go before the runs that were shown them. The order of cascades is not defined, so the
-- references go first.
create function empty_tenant() returns trigger language plpgsql as $$
begin
  delete from run_passages where tenant_id = old.id;
  return old;
end
$$;
create trigger tenants_emptied before delete on tenants for each row execute function empty_tenant();
