-- What turns cost, in billionths of a US dollar, by the prices that held when the model answered. Null for runs from before.
alter table agent_runs add column cost_nano bigint;
-- Calls of the run whose price is not known: they are no part of its cost.
alter table agent_runs add column unpriced_calls int;

-- What an agent has asked of each model in a period: all calls, those of turns that failed included.
create table model_usage (
  tenant_id text not null,
  agent_id text not null,
  period_start timestamptz not null,
  -- As it is configured: provider/model.
  model text not null,
  calls bigint not null default 0,
  unpriced_calls bigint not null default 0,
  input_tokens bigint not null default 0,
  -- A part of input_tokens.
  cached_input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cost_nano bigint not null default 0,
  primary key (tenant_id, agent_id, period_start, model),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
