-- How long a tenant keeps what. A limit that is null keeps for ever, and so does a tenant without a row.
create table tenant_retention (
  tenant_id text primary key references tenants on delete cascade,
  -- Days since the last message of a conversation, the end of a run or job, the entry, the mail, the event.
  conversations int check (conversations > 0),
  runs int check (runs > 0),
  audit_entries int check (audit_entries > 0),
  email_logs int check (email_logs > 0),
  event_deliveries int check (event_deliveries > 0),
  ingestion_jobs int check (ingestion_jobs > 0),
  -- When what is too old is looked for next; later while a process is at it, so that one alone is.
  due_at timestamptz not null default now(),
  -- The id of the last conversation that was looked at; empty at the beginning of a round.
  conversations_seen text not null default '',
  updated_at timestamptz not null default now()
);
create index tenant_retention_due on tenant_retention (due_at);
