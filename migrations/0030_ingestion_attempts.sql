-- Number of attempts that have begun. Only the latest may change documents.
alter table ingestion_jobs add column attempt integer not null default 0;
