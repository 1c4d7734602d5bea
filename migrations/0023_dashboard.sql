-- What is edited as a whole: every change raises the version, and one that was made from an older version is refused.
alter table agents add column version int not null default 1;
alter table tools add column version int not null default 1;
alter table channels add column version int not null default 1;
alter table api_keys add column version int not null default 1;

-- The conversation's list counts opinions of a conversation, however long it is.
alter table message_feedback add column conversation_id text references conversations on delete cascade;
update message_feedback f set conversation_id = m.conversation_id from messages m where m.id = f.message_id;
alter table message_feedback alter column conversation_id set not null;
create index message_feedback_conversation on message_feedback (conversation_id);

-- What the team says to an agent to try it: traced like every other conversation, and in nobody's inbox.
alter table conversations drop constraint conversations_channel_check;
alter table conversations add constraint conversations_channel_check
  check (channel in ('api', 'widget', 'whatsapp', 'messenger', 'test'));
