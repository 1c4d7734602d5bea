-- The widget of an agent: how it looks and what it says on pages. It is no part of the agent's versions: a change of colour is
-- no change of how questions are answered.
create table agent_widgets (
  agent_id text primary key,
  tenant_id text not null,
  -- What a page names it by; its fingerprint is that of the key. Public: whoever opens the page reads it.
  public_id text not null unique,
  -- What it may do and from where; whoever revokes it takes the widget off all pages.
  key_id text not null references api_keys on delete cascade,
  look jsonb not null,
  version int not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index agent_widgets_key on agent_widgets (key_id);

-- Somebody has said that the guided start is not to be shown first any more.
alter table tenants add column start_dismissed_at timestamptz;
