-- Messages that were stored without a key, by an import or an older service, are given theirs in the background: 0, -1, -2 …
-- downwards from the newest, so that they come before everything that has a key already and no key ever changes.
-- message_count stays the last key; together with legacy_count it is the number of messages.
alter table conversations add column legacy_count bigint not null default 0;
update conversations c set legacy_count = l.count
from (select conversation_id, count(*) as count from messages where position is null group by conversation_id) l
where l.conversation_id = c.id;

-- What a repeated import is known by.
alter table conversations add column import_key text;
create unique index conversations_import_key on conversations (agent_id, import_key) where import_key is not null;

-- The messages that wait for a key; empty most of the time.
create index messages_without_key on messages (conversation_id, created_at, id) where position is null;

-- The dashboard's lists, which the agent's own index does not serve.
create index conversations_tenant on conversations (tenant_id, id desc);
create index conversations_tenant_state on conversations (tenant_id, state, id desc);
create index conversations_tenant_channel on conversations (tenant_id, channel, id desc);
create index conversations_agent_all on conversations (agent_id, id desc);
