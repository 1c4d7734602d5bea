-- Every mail the service hands to a mail server, and what was told of it later.
create table email_logs (
  id text primary key,
  -- Null for mails to whoever runs the service.
  tenant_id text references tenants on delete cascade,
  recipient text not null,
  -- What it was about: 'job_failed', …
  kind text not null,
  -- 'queued' until the mail server has answered, then 'sent' or 'failed'; later as the provider's events say.
  status text not null default 'queued',
  -- By which the provider's events name it.
  provider_message_id text,
  -- Why it was not sent, without addresses and secrets.
  last_error text,
  created_at timestamptz not null default now(),
  sent_at timestamptz,
  updated_at timestamptz not null default now()
);
create index email_logs_provider on email_logs (provider_message_id) where provider_message_id is not null;
create index email_logs_tenant on email_logs (tenant_id, id);
create index email_logs_age on email_logs (created_at);
