-- End users, conversations, their messages, and the team's inbox.

-- Search has the words of an owner, each behind the owner's id: an index scan never reads those of others. A word is
-- cut so that it fits an index row, and an address or a number into its parts, so that each of them is found.
create function inbox_words(owner text, content text) returns tsvector language sql immutable parallel safe as $$
  select array_to_tsvector(array(
    select owner || ' ' || left(w.lexeme, 60) from unnest(to_tsvector('simple', translate(left(content, 2000), '@._-+/:', '       '))) w
  ))
$$;

-- All words of a question, each of them as the beginning of one; null where it has none.
create function inbox_query(owner text, question text) returns tsquery language sql immutable parallel safe as $$
  select string_agg('''' || replace(replace(owner || ' ' || left(w.lexeme, 60), '\', '\\'), '''', '''''') || ''':*', ' & ')::tsquery
  from unnest(to_tsvector('simple', translate(left(question, 200), '@._-+/:', '       '))) w
$$;

-- Many statements change who answers. Each is told in the thread, by whoever made it.
create function tell_state() returns trigger language plpgsql as $$
begin
  insert into conversation_entries (tenant_id, id, conversation_id, position, kind, user_id, content)
  values (new.tenant_id, 'ent_' || replace(gen_random_uuid()::text, '-', ''), new.id, new.message_count,
    case new.state when 'HUMAN_REQUESTED' then 'requested' when 'HUMAN_ACTIVE' then 'taken'
      when 'CLOSED' then 'closed' else 'released' end,
    case new.state when 'HUMAN_REQUESTED' then null else new.state_by end,
    case new.state when 'HUMAN_REQUESTED' then new.handoff_reason end);
  return null;
end $$;

create table end_users (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  external_id text,
  created_at timestamptz not null default now(),
  unique (tenant_id, external_id),
  primary key (tenant_id, id)
);
create index end_users_words on end_users using gin (inbox_words(tenant_id, external_id)) where external_id is not null;

-- Everything an end user is known by at a provider: an identity is a set of aliases, each of which names one person.
create table end_user_aliases (
  tenant_id text not null references tenants on delete cascade,
  channel text not null,
  kind text not null,
  value text not null,
  end_user_id text not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, channel, kind, value),
  foreign key (tenant_id, end_user_id) references end_users (tenant_id, id) on delete cascade
);
create index end_user_aliases_user on end_user_aliases (tenant_id, end_user_id);
create index end_user_aliases_words on end_user_aliases using gin (inbox_words(tenant_id, value));

create table conversations (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  end_user_id text not null,
  channel text not null,
  -- The configuration a channel conversation came in by; its replies go out through it.
  channel_id text,
  -- The id that a client gave its chat: the conversation of an agent that it continues. One for each scope of sources,
  -- as a key with another scope reaches none of them. Hashed there, as a scope may be longer than an index row.
  chat_id text,
  -- What a repeated import is known by.
  import_key text,
  -- Of the key that began it: what is said under a scope is read under the same one again.
  source_scope jsonb,
  state text not null default 'AI_ACTIVE' check (state in ('AI_ACTIVE', 'HUMAN_REQUESTED', 'HUMAN_ACTIVE', 'CLOSED')),
  -- The member of the team who last changed the state; null where it was not one of them.
  state_by text,
  assignee_id text,
  -- Why a human was asked for.
  handoff_reason text,
  -- Raised by everything that changes who answers; a reply of the model is written only under the epoch it began with.
  epoch bigint not null default 0,
  -- The model's history begins after this position: raised when a human gives the conversation back.
  episode_start bigint not null default 0,
  message_count bigint not null default 0,
  -- Messages that were stored without a position, by an import, are given theirs in the background: 0, -1, -2 …
  -- downwards from the newest, so that they come before everything that has a position already and no position ever
  -- changes. message_count stays the last position; together with legacy_count it is the number of messages.
  legacy_count bigint not null default 0,
  -- Turns of one conversation run one at a time, in order of arrival, across processes: each takes a ticket, and may
  -- run when every lower ticket has been served or its run is no longer alive.
  tickets bigint not null default 0,
  served bigint not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, end_user_id) references end_users (tenant_id, id) on delete cascade,
  foreign key (tenant_id, channel_id) references channels (tenant_id, id) on delete set null (channel_id),
  foreign key (tenant_id, assignee_id) references users (tenant_id, id) on delete set null (assignee_id)
);
create index conversations_tenant_state on conversations (tenant_id, state, id desc);
create index conversations_tenant_channel on conversations (tenant_id, channel, id desc);
create index conversations_agent on conversations (tenant_id, agent_id, channel, id desc);
create index conversations_agent_all on conversations (tenant_id, agent_id, id desc);
create index conversations_end_user on conversations (tenant_id, end_user_id, id desc);
-- One open conversation of a contact and a channel: concurrent first messages meet in it.
create unique index conversations_open_on_channel on conversations (tenant_id, channel_id, end_user_id)
  where channel_id is not null and state <> 'CLOSED';
create unique index conversations_import_key on conversations (tenant_id, agent_id, import_key)
  where import_key is not null;
create unique index conversations_chat on conversations (tenant_id, agent_id, chat_id, md5(coalesce(source_scope::text, '')))
  where chat_id is not null;
create index conversations_activity on conversations (tenant_id, updated_at desc, id desc) where channel <> 'test';
create index conversations_people on conversations (tenant_id, updated_at desc, id desc)
  where state in ('HUMAN_REQUESTED', 'HUMAN_ACTIVE');
create index conversations_assignee on conversations (tenant_id, assignee_id, updated_at desc, id desc)
  where assignee_id is not null;
create statistics conversations_of_tenant (dependencies) on tenant_id, agent_id, end_user_id from conversations;
create trigger conversations_state after update of state on conversations
  for each row when (old.state <> new.state) execute function tell_state();

-- position is the conversation-scoped pagination key: 1, 2, 3 …, taken from conversations.message_count under its row
-- lock.
create table messages (
  tenant_id text not null,
  id text not null,
  conversation_id text not null,
  agent_id text not null,
  position bigint,
  role text not null check (role in ('user', 'assistant')),
  -- Who wrote an assistant message; null for the end user's.
  author text check (author in ('agent', 'human', 'system')),
  -- The dashboard user, when a human of the team wrote it here.
  author_user_id text,
  content text not null,
  -- [{artifact, mimeType, name, size}]: files that came with the message or go out with it.
  attachments jsonb not null default '[]',
  citations jsonb not null default '[]',
  input_tokens int not null default 0,
  output_tokens int not null default 0,
  -- The provider's id: a message that comes again after its dedupe key has gone is not stored again.
  channel_message_id text,
  -- On the end user's messages of channels: what answers it (a message id), or why nothing does.
  answered_by text,
  -- What a channel's adapter said of a contact's message, to get it back when it answers: an e-mail's subject and ids.
  channel_context jsonb,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  unique (tenant_id, conversation_id, position),
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade
);
-- The messages that wait for a key; empty most of the time.
create index messages_without_key on messages (conversation_id, created_at, id) where position is null;
create unique index messages_channel_message on messages (tenant_id, conversation_id, channel_message_id)
  where channel_message_id is not null;
-- What customers wrote over channels and nobody has answered.
create index messages_unanswered on messages (tenant_id, conversation_id)
  where role = 'user' and channel_message_id is not null and answered_by is null;
create index messages_words on messages using gin (inbox_words(tenant_id, content));
create statistics messages_of_tenant (dependencies) on tenant_id, conversation_id from messages;

-- One opinion a message: the last one counts.
create table message_feedback (
  tenant_id text not null,
  message_id text not null,
  -- Opinions of a conversation are counted by it, however long that is.
  conversation_id text not null,
  rating smallint not null check (rating in (1, -1)),
  comment text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, message_id),
  foreign key (tenant_id, message_id) references messages (tenant_id, id) on delete cascade,
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade
);
create index message_feedback_conversation on message_feedback (tenant_id, conversation_id);

-- Files that belong to a conversation, of any channel: what has a row here is not removed from the artifact store.
create table conversation_artifacts (
  tenant_id text not null,
  conversation_id text not null,
  ref text not null references artifacts,
  primary key (tenant_id, conversation_id, ref),
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade
);
create index conversation_artifacts_ref on conversation_artifacts (ref);

-- A session is known by an id that only the page holds; here is its SHA-256.
create table widget_sessions (
  tenant_id text not null,
  id_hash bytea not null,
  agent_id text not null,
  end_user_id text not null,
  -- The conversation that goes on: null until the first message. A closed one is followed by another.
  conversation_id text,
  used_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  primary key (tenant_id, id_hash),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, end_user_id) references end_users (tenant_id, id) on delete cascade,
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete set null (conversation_id)
);
create index widget_sessions_used on widget_sessions (used_at);
create index widget_sessions_agent on widget_sessions (tenant_id, agent_id);
create index widget_sessions_end_user on widget_sessions (tenant_id, end_user_id);
create index widget_sessions_conversation on widget_sessions (tenant_id, conversation_id)
  where conversation_id is not null;

create table conversation_reads (
  tenant_id text not null references tenants on delete cascade,
  user_id text not null,
  conversation_id text not null,
  -- Of the last message that was read.
  position bigint not null,
  primary key (tenant_id, user_id, conversation_id),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade
);
create index conversation_reads_conversation on conversation_reads (tenant_id, conversation_id);

-- What the team wrote for itself, and what happened to the conversation. No customer and no model is shown any of it.
create table conversation_entries (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  conversation_id text not null,
  -- Of the message that it stands after; 0 before the first.
  position bigint not null,
  kind text not null,
  -- Who did it; null: the customer or the service itself. The entry outlives the member.
  user_id text,
  -- Whom the conversation was given to.
  subject_id text,
  -- The note, why a human was asked for, or the label's name.
  content text,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, id),
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade
);
create index conversation_entries_place on conversation_entries (tenant_id, conversation_id, position, created_at);
create index conversation_entries_words on conversation_entries using gin (inbox_words(tenant_id, content))
  where kind = 'note';

-- Labels, saved views and canned replies: a few of each, by name.
create table inbox_items (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  kind text not null,
  name text not null,
  content jsonb not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index inbox_items_name on inbox_items (tenant_id, kind, lower(name));

create table conversation_labels (
  tenant_id text not null,
  conversation_id text not null,
  label_id text not null,
  primary key (tenant_id, conversation_id, label_id),
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade,
  foreign key (tenant_id, label_id) references inbox_items (tenant_id, id) on delete cascade
);
create index conversation_labels_label on conversation_labels (tenant_id, label_id);
