-- The crawl ledger: one line for each address that a job met, in the order in which it was settled, with why it is or is
-- not part of the knowledge; and what the next sync compares, so that an unchanged page is not read again. Kept for the
-- generation that answers, for the latest job and for the running one.
create table crawl_entries (
  source_id text not null references sources on delete cascade,
  generation bigint not null,
  place int not null,
  url text not null,
  depth int not null,
  parent text,
  outcome text not null check (outcome in ('indexed', 'unchanged', 'skipped', 'failed', 'redirected')),
  reason text,
  message text,
  http_status int,
  -- The document it became or repeats, or where it redirects to.
  target text,
  etag text,
  last_modified text,
  -- The `lastmod` of the sitemap that lists it, as it is written there.
  listed_at text,
  fetched_at timestamptz not null,
  -- Links of the page, null where they are not kept: without them it is always fetched in full.
  links jsonb,
  -- Of its words: exactly these (SHA-256), and nearly these.
  digest text,
  fingerprint text,
  -- Of the code that read it: what a later version would read differently is read again.
  revision int not null,
  primary key (source_id, generation, place)
);

-- What went wrong in each attempt, first to last: [{"at": …, "error": …}].
alter table ingestion_jobs add column attempt_errors jsonb not null default '[]';
