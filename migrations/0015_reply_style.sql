-- How long an agent's replies are and in which tone; 'default' leaves it to its instructions.
alter table agents
  add column reply_length text not null default 'default',
  add column reply_tone text not null default 'default';

update agent_versions set settings = settings || '{"length": "default", "tone": "default"}';
