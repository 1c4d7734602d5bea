-- When a message was stored. created_at may be earlier: the provider's time, or the beginning of the turn. Null for messages
-- from before this column: when they were created.
alter table messages add column stored_at timestamptz;
alter table messages alter column stored_at set default now();
