-- What arrives over channels durably before the provider is answered, and what goes out.

-- Raw event, dedupe claim and job are written in one transaction before the provider is answered. Each delivery writes
-- every index of the inbox before that, so there is none: ids begin with the moment they were made.
create table channel_inbox (
  id text primary key,
  channel text not null,
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

-- One row a message that a provider is asked to deliver: a long reply has several parts.
create table channel_outbox (
  tenant_id text not null references tenants on delete cascade,
  id text not null,
  conversation_id text not null,
  channel_id text not null,
  message_id text not null,
  part int not null,
  author text not null check (author in ('agent', 'human', 'system')),
  -- The conversation's epoch when it was written: what the model wrote is not sent under another.
  epoch bigint not null,
  body text not null,
  media jsonb,
  state text not null default 'pending' check (state in ('pending', 'sending', 'sent', 'failed', 'cancelled')),
  -- Calls of the provider that were begun. More than one: an answer was lost, and the customer may have it twice.
  attempts int not null default 0,
  resent boolean not null default false,
  provider_message_id text,
  -- What the provider told of it later; only moves forward.
  delivery text check (delivery in ('sent', 'delivered', 'read', 'failed')),
  last_error text,
  sent_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  unique (tenant_id, message_id, part),
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade,
  foreign key (tenant_id, channel_id) references channels (tenant_id, id) on delete cascade
);
create index channel_outbox_conversation on channel_outbox (tenant_id, conversation_id, id);
create index channel_outbox_provider on channel_outbox (tenant_id, channel_id, provider_message_id)
  where provider_message_id is not null;
create index channel_outbox_waiting on channel_outbox (tenant_id, conversation_id)
  where state in ('pending', 'sending');

-- Keys that may be claimed once within their time: 24 hours for inbound messages, 7 days for outbound ones.
create table dedupe_keys (
  key text primary key,
  expires_at timestamptz not null
);
create index dedupe_keys_expiry on dedupe_keys (expires_at);
