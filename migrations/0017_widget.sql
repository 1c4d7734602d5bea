-- The widget: who chats on a page, the files that come with a message, and what people think of replies.

-- A session is known by an id that only the page holds; here is its SHA-256.
create table widget_sessions (
  id_hash bytea primary key,
  tenant_id text not null,
  agent_id text not null,
  end_user_id text not null references end_users on delete cascade,
  -- The conversation that goes on: null until the first message. A closed one is followed by another.
  conversation_id text references conversations on delete set null,
  created_at timestamptz not null default now(),
  used_at timestamptz not null default now(),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index widget_sessions_used on widget_sessions (used_at);
create index widget_sessions_agent on widget_sessions (agent_id);
create index widget_sessions_end_user on widget_sessions (end_user_id);
create index widget_sessions_conversation on widget_sessions (conversation_id) where conversation_id is not null;

-- Files that belong to a conversation, of any channel: what has a row here is not removed from the artifact store.
create table conversation_artifacts (
  conversation_id text not null references conversations on delete cascade,
  ref text not null references artifacts,
  primary key (conversation_id, ref)
);
create index conversation_artifacts_ref on conversation_artifacts (ref);

-- One opinion a message: the last one counts.
create table message_feedback (
  message_id text primary key references messages on delete cascade,
  rating smallint not null check (rating in (1, -1)),
  comment text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

-- Files of the user's message; they join the conversation with it (messages.attachments).
alter table agent_runs add column attachments jsonb not null default '[]';
