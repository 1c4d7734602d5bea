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
