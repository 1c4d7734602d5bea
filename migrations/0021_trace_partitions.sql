-- The tables of traces by weeks. Nothing is copied or scanned. src/store/Partitions.ts makes the weeks and drops
-- them. A partition is reached by its parent alone, whose policy holds: by itself nobody but the owner reads it.

-- In the order in which turns lock them.
lock table agent_runs, passages, agent_run_events, run_passages in access exclusive mode;

alter table agent_run_events rename to agent_run_events_first;
alter index agent_run_events_pkey rename to agent_run_events_first_pkey;
create table agent_run_events (
  tenant_id text not null,
  run_id text not null,
  sequence int not null,
  type text not null,
  status text not null,
  label text not null,
  payload jsonb,
  at timestamptz not null,
  primary key (tenant_id, run_id, sequence),
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade
) partition by range (run_id);

drop trigger run_passages_removed on run_passages;
alter table run_passages rename to run_passages_first;
alter index run_passages_pkey rename to run_passages_first_pkey;
alter index run_passages_hash rename to run_passages_first_hash;
create table run_passages (
  tenant_id text not null,
  run_id text not null,
  -- The number by which the reply cites it.
  number int not null constraint run_passages_number_check check (number > 0),
  hash bytea not null,
  source_id text not null,
  document_id text not null,
  chunk_id text not null,
  score float8 not null,
  primary key (tenant_id, run_id, number),
  foreign key (tenant_id, hash) references passages (tenant_id, hash),
  foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade
) partition by range (run_id);
create index run_passages_hash on run_passages (tenant_id, hash);
create trigger run_passages_removed after delete on run_passages
  referencing old table as removed for each statement execute function free_passages();

do $$
declare
  name text;
  bound text;
begin
  foreach name in array array['agent_run_events', 'run_passages'] loop
    select substring(pg_get_constraintdef(oid) from '''([^'']+)''') into bound
    from pg_constraint where conrelid = (name || '_first')::regclass and conname = name || '_bound';
    execute format('alter table %I attach partition %I for values from (minvalue) to (%L)', name, name || '_first', bound);
    execute format('alter table %I drop constraint %I', name || '_first', name || '_bound');
  end loop;
end
$$;

-- What no other partition has a place for, so that no turn is refused.
create table agent_run_events_default partition of agent_run_events default;
create table run_passages_default partition of run_passages default;
alter table agent_run_events_first enable row level security;
alter table agent_run_events_default enable row level security;
alter table run_passages_first enable row level security;
alter table run_passages_default enable row level security;

-- How far the search for passages of no run is, after a week of run_passages was dropped: behind the passage with this
-- tenant and hash. No row: nothing is searched.
create table passage_sweep (
  one boolean primary key default true check (one),
  seen_tenant text not null default '',
  seen_hash bytea not null default ''
);
