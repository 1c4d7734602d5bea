-- How a settled turn went, so that a report reads the turns that went wrong and no others.
alter table agent_runs
  -- Nothing was found, nothing was cited, or the sources do not support the reply.
  add column unanswered boolean not null default false,
  -- The agent or the customer asked for a human, or somebody took over while the agent was answering.
  add column handed_over boolean not null default false,
  -- Somebody stopped it.
  add column stopped boolean not null default false,
  -- What the customer thinks of the reply; null: they have not said.
  add column rating smallint check (rating in (1, -1)),
  -- Milliseconds from the start to the first text of the reply; null where there was none.
  add column first_text_ms int check (first_text_ms >= 0);

update agent_runs r set rating = f.rating from message_feedback f
  where r.conversation_id = f.conversation_id and r.message_id = f.message_id;
update agent_runs r set unanswered = true from agent_run_events e
  where e.run_id = r.id and e.type = 'retrieval.completed' and e.payload -> 'chunks' = '[]' and r.status = 'complete';
update agent_runs r set stopped = true from agent_run_events e
  where e.run_id = r.id and e.type = 'run.completed' and e.label = 'Stopped';
update agent_runs r set handed_over = true from agent_run_events e
  where e.run_id = r.id and (e.type = 'tool.completed' and e.payload ->> 'tool' = 'hand_off_to_human'
    or e.type = 'run.failed' and e.payload ->> 'code' = 'TAKEN_OVER');

-- Newest first: ids begin with their moment.
create index agent_runs_went_wrong on agent_runs (tenant_id, id)
  where status = 'failed' or unanswered or handed_over or stopped or rating = -1;

-- Vectors of questions whose turns went wrong, made when a report first needs them; they go with the run.
create table question_vectors (
  run_id text primary key references agent_runs on delete cascade,
  profile text not null,
  embedding bytea not null
);
