-- Which embedding model answers for an agent, and what scheduled readings of its sources go by.

-- Vectors of several profiles may stand side by side; those of `profile` answer. Null: no vector was stored yet.
alter table agent_stats add column profile text;
alter table agent_stats add column profile_since timestamptz;
update agent_stats stats set profile_since = now(), profile = (
  select e.profile from chunk_embeddings e where e.agent_id = stats.agent_id
  group by e.profile order by count(*) desc, e.profile limit 1
);

-- The profile that every agent is moved to: that of the process which started last. One row.
create table embedding_target (
  one boolean primary key default true check (one),
  profile text not null,
  since timestamptz not null default now()
);

-- Why a source has no vectors of a profile, in words for its owner; gone as soon as it has.
create table embedding_failures (
  source_id text primary key references sources on delete cascade,
  profile text not null,
  message text not null,
  failed_at timestamptz not null default now()
);

-- Until when a provider asked every process to leave it alone.
create table provider_pauses (
  provider text primary key,
  until timestamptz not null
);

-- The last reading that the schedule asked for, and until when it asks for none because the plan has no job left.
alter table sources add column refreshed_at timestamptz;
alter table sources add column refresh_held_until timestamptz;
create index sources_refresh on sources ((config ->> 'refresh'), last_synced_at)
  where config ->> 'refresh' in ('daily', 'weekly');
