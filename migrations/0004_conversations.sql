-- End users, conversations and their messages.
create table end_users (
  id text primary key,
  tenant_id text not null references tenants on delete cascade,
  external_id text,
  created_at timestamptz not null default now(),
  unique (tenant_id, external_id)
);

create table conversations (
  id text primary key,
  tenant_id text not null,
  agent_id text not null,
  end_user_id text not null references end_users on delete cascade,
  channel text not null check (channel in ('api', 'widget', 'whatsapp', 'messenger')),
  state text not null default 'AI_ACTIVE' check (state in ('AI_ACTIVE', 'HUMAN_REQUESTED', 'HUMAN_ACTIVE', 'CLOSED')),
  message_count bigint not null default 0,
  -- Turns of one conversation run one at a time, in order of arrival, across processes: each takes a ticket, and may
  -- run when every lower ticket has been served or its run is no longer alive.
  tickets bigint not null default 0,
  served bigint not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index conversations_agent on conversations (agent_id, channel, id desc);
create index conversations_end_user on conversations (end_user_id, id desc);

-- position is the conversation-scoped pagination key: 1, 2, 3 …, taken from conversations.message_count under its row lock.
create table messages (
  id text primary key,
  conversation_id text not null references conversations on delete cascade,
  agent_id text not null,
  position bigint,
  role text not null check (role in ('user', 'assistant')),
  content text not null,
  citations jsonb not null default '[]',
  input_tokens int not null default 0,
  output_tokens int not null default 0,
  created_at timestamptz not null default now(),
  unique (conversation_id, position)
);
