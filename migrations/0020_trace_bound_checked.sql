-- spoke: own transaction
-- Without the locks of the files before and after it: it reads both tables beside readers and writers.
alter table agent_run_events validate constraint agent_run_events_bound;
alter table run_passages validate constraint run_passages_bound;
