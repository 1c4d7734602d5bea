-- Turns and their traces, and what their models were shown.

-- A turn: from its reservation to its settlement, and how it went, so that a report reads the turns that went wrong and
-- no others.
create table agent_runs (
  tenant_id text not null,
  id text not null,
  agent_id text not null,
  -- Of the agent's settings that answered.
  agent_version int,
  conversation_id text,
  ticket bigint,
  -- Of the conversation when the turn began: under another one its reply is not written.
  epoch bigint not null default 0,
  instance_id text not null,
  -- The user's message is stored before anything else happens; it joins the conversation when the turn settles.
  user_message_id text not null,
  user_message text not null,
  -- Files of the user's message; they join the conversation with it (messages.attachments).
  attachments jsonb not null default '[]',
  -- Stored messages that the turn answers; null when the user's message joins the conversation with the turn's end.
  answers text[],
  source_scope jsonb,
  -- Which language the question is in, as far as its words tell (ISO 639-1).
  language text,
  message_id text,
  -- The period in which the turn was reserved.
  period_start timestamptz not null,
  -- The turn was reserved with a credit, which it gives back when it fails before the model was called.
  credited boolean not null default false,
  status text not null check (status in ('running', 'complete', 'failed')),
  -- Somebody asked that the run stop; the process that runs it sees to it.
  stop_requested boolean not null default false,
  started_at timestamptz not null default now(),
  -- By when it has ended, by the database's clock: what is running later is ended by whoever finds it, though its
  -- process lives.
  ends_by timestamptz not null default now() + interval '10 minutes',
  completed_at timestamptz,
  -- Milliseconds from the start to the first text of the reply; null where there was none.
  first_text_ms int check (first_text_ms >= 0),
  -- What it cost, in billionths of a US dollar, by the prices that held when the model answered.
  cost_nano bigint,
  -- Calls of the run whose price is not known: they are no part of its cost.
  unpriced_calls int,
  -- Nothing was found, nothing was cited, or the sources do not support the reply.
  unanswered boolean not null default false,
  -- The agent or the customer asked for a human, or somebody took over while the agent was answering.
  handed_over boolean not null default false,
  -- Somebody stopped it.
  stopped boolean not null default false,
  -- What the customer thinks of the reply; null: they have not said.
  rating smallint check (rating in (1, -1)),
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade
);
create index agent_runs_running on agent_runs (instance_id) where status = 'running';
create index agent_runs_to_stop on agent_runs (instance_id) where status = 'running' and stop_requested;
-- Newest first: ids begin with their moment.
create index agent_runs_went_wrong on agent_runs (tenant_id, id)
  where status = 'failed' or unanswered or handed_over or stopped or rating = -1;
create index agent_runs_agent on agent_runs (tenant_id, agent_id, id);
create index agent_runs_conversation on agent_runs (tenant_id, conversation_id, ticket);
create statistics agent_runs_of_tenant (dependencies) on tenant_id, agent_id, conversation_id from agent_runs;

-- Its trace.
create table agent_run_events (
  tenant_id text not null,
  run_id text not null,
  sequence int not null,
  type text not null,
  status text not null,
  label text not null,
  payload jsonb,
  at timestamptz not null,
  primary key (tenant_id, run_id, sequence),
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade
);

-- What the model was shown of the sources, kept beside the runs that it was shown in: a sync replaces chunks, and a
-- source may be deleted. One row for each text of a tenant, however many runs were shown it.
create table passages (
  tenant_id text not null references tenants on delete cascade,
  -- SHA-256 of everything below it.
  hash bytea not null,
  source_name text not null,
  title text not null,
  heading text not null,
  url text not null,
  content text not null,
  primary key (tenant_id, hash)
);

-- Whatever deletes runs frees what no other run was shown, in its own transaction. The rows are locked first: a run
-- that settles meanwhile and refers to one of them is seen by the statement after it, or waits and then stores the text
-- anew.
create function free_passages() returns trigger language plpgsql as $$
begin
  perform from passages p where (p.tenant_id, p.hash) in (select tenant_id, hash from removed)
    order by p.tenant_id, p.hash for update;
  delete from passages p
  where (p.tenant_id, p.hash) in (select tenant_id, hash from removed)
    and not exists (select from run_passages r where r.tenant_id = p.tenant_id and r.hash = p.hash);
  return null;
end $$;

create table run_passages (
  tenant_id text not null,
  run_id text not null,
  -- The number by which the reply cites it.
  number int not null check (number > 0),
  hash bytea not null,
  source_id text not null,
  document_id text not null,
  chunk_id text not null,
  score float8 not null,
  primary key (tenant_id, run_id, number),
  foreign key (tenant_id, hash) references passages (tenant_id, hash),
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade
);
create index run_passages_hash on run_passages (tenant_id, hash);
create trigger run_passages_removed after delete on run_passages
  referencing old table as removed for each statement execute function free_passages();

-- Vectors of questions whose turns went wrong, made when a report first needs them; they go with the run.
create table question_vectors (
  tenant_id text not null,
  run_id text not null,
  profile text not null,
  embedding bytea not null,
  primary key (tenant_id, run_id),
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade
);

-- Which turn an Idempotency-Key has begun, for 24 hours. The answer is the turn's own, so nothing of it is kept here. A
-- key of the API belongs to one agent; the host of a library has none, and its keys are the agent's.
create table turn_claims (
  tenant_id text not null,
  agent_id text not null,
  key_id text not null,
  idempotency_key text not null,
  -- SHA-256 of the request.
  request_hash text not null,
  run_id text not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, agent_id, key_id, idempotency_key),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index turn_claims_age on turn_claims (created_at);
