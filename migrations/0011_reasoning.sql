-- Whether streams of an agent carry what its model thinks before it replies.
alter table agents add column stream_reasoning boolean not null default false;

update agent_versions set settings = settings || '{"streamReasoning": false}';
