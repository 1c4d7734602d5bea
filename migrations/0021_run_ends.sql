-- By when a run has ended, by the database's clock: what is running later is ended by whoever finds it, though its process
-- lives. A turn writes its own time-out; what was running before has ten minutes.
alter table agent_runs add column ends_by timestamptz not null default now() + interval '10 minutes';
