-- The id that a client gave its chat: the conversation of an agent that it continues. One for each scope of sources, as a key with
-- another scope reaches none of them. Hashed there, as a scope may be longer than an index row.
alter table conversations add column chat_id text;
create unique index conversations_chat on conversations (agent_id, chat_id, md5(coalesce(source_scope::text, '')))
  where chat_id is not null;
