-- Messaging channels: what arrives durably before the provider is answered, who wrote it, and what goes out.

-- An agent's account at a provider. At most one active configuration an account: routing needs exactly one.
create table channels (
  id text primary key,
  tenant_id text not null,
  agent_id text not null,
  channel text not null check (channel in ('whatsapp', 'messenger')),
  -- WhatsApp: the phone number id; Messenger: the Page id.
  external_id text not null,
  -- Sealed (capabilities/SecretBox); never leaves the process.
  access_token text not null,
  active boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create unique index channels_account on channels (channel, external_id) where active;
create index channels_agent on channels (agent_id, id);

-- Keys that may be claimed once within their time: 24 hours for inbound messages, 7 days for outbound ones.
create table dedupe_keys (
  key text primary key,
  expires_at timestamptz not null
);
create index dedupe_keys_expiry on dedupe_keys (expires_at);

-- Raw event, dedupe claim and job are written in one transaction before the provider is answered.
create table channel_inbox (
  id text primary key,
  channel text not null check (channel in ('whatsapp', 'messenger')),
  account_id text not null,
  -- Null for events that are no message (user_id_update).
  message_id text,
  -- The normalized event (domain/Channel).
  event jsonb not null,
  -- As the provider sent it.
  raw jsonb not null,
  state text not null default 'queued' check (state in ('queued', 'processed', 'failed')),
  -- Why it was not answered, or could not be routed.
  outcome text,
  received_at timestamptz not null default now(),
  processed_at timestamptz
);
create index channel_inbox_age on channel_inbox (received_at);
create index channel_inbox_message on channel_inbox (channel, message_id);

-- Everything an end user is known by at a provider: an identity is a set of aliases, each of which names one person.
create table end_user_aliases (
  tenant_id text not null references tenants on delete cascade,
  channel text not null check (channel in ('whatsapp', 'messenger')),
  kind text not null check (kind in ('phone', 'user_id', 'parent_user_id', 'page_scoped_id')),
  value text not null,
  end_user_id text not null references end_users on delete cascade,
  created_at timestamptz not null default now(),
  primary key (tenant_id, channel, kind, value)
);
create index end_user_aliases_user on end_user_aliases (end_user_id);

alter table conversations
  -- The configuration a channel conversation came in by; its replies go out through it.
  add column channel_id text references channels on delete set null,
  -- Raised by everything that changes who answers; a reply of the model is written only under the epoch it began with.
  add column epoch bigint not null default 0,
  -- Why a human was asked for.
  add column handoff_reason text;
-- One open conversation of a contact and a channel: concurrent first messages meet in it.
create unique index conversations_open_on_channel on conversations (channel_id, end_user_id)
  where channel_id is not null and state <> 'CLOSED';

alter table messages
  -- The provider's id: a message that comes again after its dedupe key has gone is not stored again.
  add column channel_message_id text,
  -- Who wrote an assistant message; null for the end user's.
  add column author text check (author in ('agent', 'human', 'system')),
  -- The dashboard user, when a human of the team wrote it here.
  add column author_user_id text,
  -- [{artifact, mimeType, name, size}]: files that came with the message or go out with it.
  add column attachments jsonb not null default '[]',
  -- On the end user's messages of channels: what answers it (a message id), or why nothing does.
  add column answered_by text;
create unique index messages_channel_message on messages (conversation_id, channel_message_id)
  where channel_message_id is not null;

-- One row a message that a provider is asked to deliver: a long reply has several parts.
create table channel_outbox (
  id text primary key,
  tenant_id text not null references tenants on delete cascade,
  conversation_id text not null references conversations on delete cascade,
  channel_id text not null references channels on delete cascade,
  message_id text not null,
  part int not null,
  author text not null check (author in ('agent', 'human', 'system')),
  -- The conversation's epoch when it was written: what the model wrote is not sent under another.
  epoch bigint not null,
  body text not null,
  media jsonb,
  state text not null default 'pending'
    check (state in ('pending', 'sending', 'sent', 'failed', 'cancelled')),
  -- Calls of the provider that were begun. More than one: an answer was lost, and the customer may have it twice.
  attempts int not null default 0,
  resent boolean not null default false,
  provider_message_id text,
  -- What the provider told of it later; only moves forward.
  delivery text check (delivery in ('sent', 'delivered', 'read', 'failed')),
  last_error text,
  created_at timestamptz not null default now(),
  sent_at timestamptz,
  unique (message_id, part)
);
create index channel_outbox_conversation on channel_outbox (conversation_id, id);
create index channel_outbox_provider on channel_outbox (channel_id, provider_message_id) where provider_message_id is not null;
create index channel_outbox_waiting on channel_outbox (conversation_id) where state in ('pending', 'sending');
