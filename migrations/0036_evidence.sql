-- What the model was shown of the sources, kept beside the runs that it was shown in: a sync replaces chunks, and a source may
-- be deleted. One row for each text of a tenant, however many runs were shown it.
create table passages (
  tenant_id text not null references tenants on delete cascade,
  -- SHA-256 of everything below it.
  hash bytea not null,
  source_name text not null,
  title text not null,
  heading text not null,
  url text not null,
  content text not null,
  primary key (tenant_id, hash)
);

alter table agent_runs add constraint agent_runs_of_tenant unique (tenant_id, id);
create table run_passages (
  tenant_id text not null,
  run_id text not null,
  -- The number by which the reply cites it.
  number int not null check (number > 0),
  hash bytea not null,
  source_id text not null,
  document_id text not null,
  chunk_id text not null,
  score float8 not null,
  primary key (tenant_id, run_id, number),
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade,
  foreign key (tenant_id, hash) references passages
);
create index run_passages_hash on run_passages (tenant_id, hash);

-- Whatever deletes runs frees what no other run was shown, in its own transaction. The rows are locked first: a run that
-- settles meanwhile and refers to one of them is seen by the statement after it, or waits and then stores the text anew.
create function free_passages() returns trigger language plpgsql as $$
begin
  perform from passages p where (p.tenant_id, p.hash) in (select tenant_id, hash from removed)
    order by p.tenant_id, p.hash for update;
  delete from passages p
  where (p.tenant_id, p.hash) in (select tenant_id, hash from removed)
    and not exists (select from run_passages r where r.tenant_id = p.tenant_id and r.hash = p.hash);
  return null;
end $$;
create trigger run_passages_removed after delete on run_passages
  referencing old table as removed for each statement execute function free_passages();

-- Questions that an agent is measured by, with what is expected of its replies.
create table test_cases (
  id text primary key,
  tenant_id text not null,
  agent_id text not null,
  question text not null,
  expect_sources jsonb not null,
  expect_facts jsonb not null,
  -- Null: the reply may be either.
  expect_refusal boolean,
  note text,
  origin text not null check (origin in ('written', 'run', 'feedback', 'human', 'file')),
  -- The run that it was made from: what a person asked goes with the person.
  run_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade
);
create index test_cases_agent on test_cases (agent_id, id);
create index test_cases_run on test_cases (tenant_id, run_id) where run_id is not null;
