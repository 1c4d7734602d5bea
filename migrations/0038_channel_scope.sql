-- Which sources the agent reads for messages of a channel. Null: every source of the agent, as before this column.
alter table channels add column source_scope jsonb;
