-- Sources that a registered reader reads. What of their settings is secret stands apart from the config, sealed, so that nothing
-- that shows a config can show it.
create table source_secrets (
  tenant_id text not null,
  source_id text not null,
  -- A JSON object of the secret settings by name, sealed.
  sealed text not null,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);

-- How far such a source is read. A pass is read step by step; what a step read and where the next one begins are written
-- together, so that a pass goes on where it stopped.
create table source_readings (
  tenant_id text not null,
  source_id text not null,
  -- What the last finished pass left for the next one; null before the first.
  cursor jsonb,
  -- Of the settings and labels that the cursor belongs to: with others, everything is read anew.
  digest text,
  -- The generation that the running pass builds, with its own digest, where its next step begins, and the steps and lines of
  -- the ledger so far; null between passes.
  generation bigint,
  pass_digest text,
  position jsonb,
  steps int not null default 0,
  lines int not null default 0,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
