-- The team's inbox: who has read what, who answers for it, what happened besides messages, labels, saved views, canned
-- replies, and what is searched.

-- What was written before this moment counts as read; what was read since stands in conversation_reads.
alter table users add column inbox_read_at timestamptz not null default now();

alter table conversations
  add column assignee_id text,
  -- The member of the team who last changed the state; null where it was not one of them.
  add column state_by text,
  add foreign key (tenant_id, assignee_id) references users (tenant_id, id) on delete set null (assignee_id);
create index conversations_activity on conversations (tenant_id, updated_at desc, id desc) where channel <> 'test';
create index conversations_people on conversations (tenant_id, updated_at desc, id desc)
  where state in ('HUMAN_REQUESTED', 'HUMAN_ACTIVE');
create index conversations_assignee on conversations (tenant_id, assignee_id, updated_at desc, id desc)
  where assignee_id is not null;

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
create trigger conversations_state after update of state on conversations
  for each row when (old.state <> new.state) execute function tell_state();

-- Search has the words of an owner, each behind the owner's id: an index scan never reads those of others. A word is cut
-- so that it fits an index row, and an address or a number into its parts, so that each of them is found.
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

create index messages_words on messages using gin (inbox_words(tenant_id, content));
create index end_users_words on end_users using gin (inbox_words(tenant_id, external_id)) where external_id is not null;
create index end_user_aliases_words on end_user_aliases using gin (inbox_words(tenant_id, value));
create index conversation_entries_words on conversation_entries using gin (inbox_words(tenant_id, content))
  where kind = 'note';
