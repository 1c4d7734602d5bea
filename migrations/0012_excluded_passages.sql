-- Texts of a source that are excluded from search. A sync makes new chunks, so excluded passages are stored by their text:
-- a new chunk with the same text is excluded too.
create table passage_exclusions (
  tenant_id text not null,
  source_id text not null,
  -- SHA-256 of a chunk's content in UTF-8.
  text_hash bytea not null,
  agent_id text not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, source_id, text_hash),
  foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade
);
create index passage_exclusions_agent on passage_exclusions (tenant_id, agent_id);

-- True for a chunk with an excluded text. It has no version and no vector, so that no search finds it.
alter table chunks add column excluded boolean not null default false;
