-- How an agent keeps to its sources: the tokens of them that its model is shown, whether it may answer without them, what
-- becomes of a reply that they do not support, and how often its model may search again in a turn.
alter table agents
  add column context_tokens int not null default 6000 check (context_tokens between 500 and 32000),
  add column grounding_mode text not null default 'strict',
  add column unsupported text not null default 'annotate',
  add column max_searches int not null default 0 check (max_searches between 0 and 8);
