-- Whose a job is: workers take the jobs of owners in turns.
alter table queue_jobs add column owner text not null default '';
create index queue_jobs_owners on queue_jobs (queue, owner, run_at, seq) where state = 'waiting';
