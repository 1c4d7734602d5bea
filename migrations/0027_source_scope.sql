-- Who may read a source: it has labels, and a key has a scope, which holds labels and sources. What is said under a scope is
-- read under the same one again. Null: everything.
alter table sources add column labels jsonb not null default '[]';
alter table api_keys add column source_scope jsonb;
alter table conversations add column source_scope jsonb;
alter table agent_runs add column source_scope jsonb;

-- True when a source meets all of `filters` (null: none), each an object of conditions; one that is left out is met by all,
-- and one that is not understood by none. Both search engines ask it.
create function source_is_visible(id text, type text, labels jsonb, metadata jsonb, filters jsonb) returns boolean
language sql immutable parallel safe as $$
  select filters is null or not exists (
    select from jsonb_array_elements(filters) as f (filter)
    where (
      (filter -> 'sourceIds' is null or filter -> 'sourceIds' ? id)
      and (filter -> 'sourceTypes' is null or filter -> 'sourceTypes' ? type)
      and (filter -> 'metadata' is null or filter -> 'metadata' = '{}' or metadata @> (filter -> 'metadata'))
      and (
        filter -> 'labels' is null or labels = '[]'
        or exists (select from jsonb_array_elements_text(labels) as l (label) where filter -> 'labels' ? label)
      )
    ) is not true
  )
$$;

-- Whether an agent has answers that somebody wrote is asked at the start of every turn.
create index sources_curated on sources (agent_id) where type = 'QA';
