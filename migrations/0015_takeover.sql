-- Who answers a conversation: what a turn answers, the epoch it began under, and where its history begins.

alter table conversations
  -- The model's history begins after this position: raised when a human gives the conversation back.
  add column episode_start bigint not null default 0;

alter table agent_runs
  -- Of the conversation when the turn began: under another one its reply is not written.
  add column epoch bigint not null default 0,
  -- Stored messages that the turn answers; null when the user's message joins the conversation with the turn's end.
  add column answers text[];

-- What customers wrote over channels and nobody has answered.
create index messages_unanswered on messages (conversation_id)
  where role = 'user' and channel_message_id is not null and answered_by is null;

-- What is still to be processed of one contact: several messages in a row get one reply.
create index channel_inbox_waiting on channel_inbox (channel, account_id, (event -> 'from' -> 0 ->> 'value'))
  where state = 'queued';
