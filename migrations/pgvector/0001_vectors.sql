-- Vectors that the database compares: copies of chunk_embeddings, which stays the truth. Every profile has a table of
-- its own, because dimensions differ and an index is of one dimension; spoke_vector_table makes it when a server with
-- that profile starts. Applied only where the extension `vector` is there and chosen; nothing else depends on it.

-- What a vector row refers to. The agent comes first: it also finds an agent's chunks. Whoever reads a vector names an
-- agent that was found by its tenant.
create unique index chunks_agent_id on chunks (agent_id, id);

-- Words within an agent. Without btree_gin the common words of other agents are read too.
do $$
begin
  if exists (select from pg_available_extensions where name = 'btree_gin') then
    create extension if not exists btree_gin;
  end if;
exception when insufficient_privilege then
  raise notice 'btree_gin may not be created here';
end $$;
do $$
begin
  if exists (select from pg_extension where extname = 'btree_gin') then
    create index chunks_words on chunks using gin (agent_id, tsv) where version is not null;
  else
    create index chunks_words on chunks using gin (tsv) where version is not null;
  end if;
end $$;

create table vector_profiles (
  profile text primary key,
  number int not null unique generated always as identity,
  dimensions int not null check (dimensions between 1 and 4096),
  -- What stands in chunk_embeddings from before is copied in the order of its key, up to this tenant and chunk so far.
  copied_tenant text not null default '',
  copied_to text not null default '',
  filled boolean not null default false
);

-- How well approximate searches did against exact ones, summed over the sampled searches of an agent.
create table retrieval_recall (
  agent_id text primary key references agents on delete cascade,
  sampled bigint not null default 0,
  recall_sum float8 not null default 0
);

-- Little-endian float32 to numbers. The concatenation keeps a stored value from being fetched anew for every byte.
create function spoke_floats(stored bytea) returns float8[] language sql immutable strict parallel safe as $$
  select array_agg(
    case when e = 0 then m * power(2::float8, -149) else (m + 8388608) * power(2::float8, e - 150) end
      * (1 - 2 * s) order by i)
  from (select stored || ''::bytea as b offset 0) whole,
    generate_series(0, length(stored) - 4, 4) i,
    lateral (select get_byte(b, i) | (get_byte(b, i + 1) << 8) | ((get_byte(b, i + 2) & 127) << 16) as m,
      ((get_byte(b, i + 3) & 127) << 1) | (get_byte(b, i + 2) >> 7) as e, get_byte(b, i + 3) >> 7 as s offset 0) bits
$$;

-- Up to 1,900 dimensions a float32 vector fits its page beside the ids, up to 3,900 a float16 one. Such vectors are
-- kept in the row: fetched from outside it, a scan takes four times as long.
create function spoke_vector_type(dimensions int) returns text language sql immutable as $$
  select case when dimensions <= 1900 then 'vector' else 'halfvec' end || '(' || dimensions || ')'
$$;

-- The table of a profile, made when there is none.
create function spoke_vector_table(wanted text, size int) returns text language plpgsql as $$
declare
  found vector_profiles;
  name text;
  kind text := spoke_vector_type(size);
begin
  select * into found from vector_profiles where profile = wanted;
  if found.number is not null then
    if found.dimensions <> size then
      raise exception 'profile % has % dimensions, not %', wanted, found.dimensions, size;
    end if;
    return 'chunk_vectors_' || found.number;
  end if;
  -- Writers that have not heard of the profile end first; those that come see it.
  lock table chunks, chunk_embeddings in share row exclusive mode;
  insert into vector_profiles (profile, dimensions) values (wanted, size)
    on conflict (profile) do nothing returning * into found;
  if found.number is null then
    return spoke_vector_table(wanted, size);
  end if;
  name := 'chunk_vectors_' || found.number;
  execute format('create table %I (
    agent_id text not null, chunk_id text not null, source_id text not null, embedding %s not null
  ) partition by hash (agent_id)', name, kind);
  execute format('alter table %I alter column embedding set storage %s', name,
    case when size <= 3900 then 'plain' else 'main' end);
  for part in 0..15 loop
    execute format('create table %I partition of %I for values with (modulus 16, remainder %s)',
      name || '_' || part, name, part);
  end loop;
  execute format('alter table %I add primary key (agent_id, chunk_id)', name);
  execute format('alter table %I add foreign key (agent_id, chunk_id) references chunks (agent_id, id)
    on delete cascade', name);
  if size <= 4000 then
    execute format('create index on %I using hnsw (embedding %s)', name,
      case when size <= 1900 then 'vector_cosine_ops' else 'halfvec_cosine_ops' end);
  end if;
  return name;
end $$;

-- In the transaction that stores vectors, whichever process does: none can be forgotten.
create function spoke_copy_vectors() returns trigger language plpgsql as $$
declare
  known record;
begin
  for known in
    select v.* from vector_profiles v where v.profile in (select distinct f.profile from fresh f)
  loop
    execute format('
      insert into %I (agent_id, chunk_id, source_id, embedding)
      select c.agent_id, c.id, c.source_id, spoke_floats(f.embedding)::%s
      from fresh f join chunks c on c.tenant_id = f.tenant_id and c.id = f.chunk_id
      where f.profile = $1 and length(f.embedding) = $2
      on conflict (agent_id, chunk_id) do update set embedding = excluded.embedding',
      'chunk_vectors_' || known.number, spoke_vector_type(known.dimensions)
    ) using known.profile, known.dimensions * 4;
  end loop;
  return null;
end $$;
create trigger chunk_embeddings_added after insert on chunk_embeddings
  referencing new table as fresh for each statement execute function spoke_copy_vectors();
create trigger chunk_embeddings_changed after update on chunk_embeddings
  referencing new table as fresh for each statement execute function spoke_copy_vectors();

-- Vectors of a profile that nobody answers with any more go without their chunks: their copies go with them.
create function spoke_drop_vectors() returns trigger language plpgsql as $$
declare
  known record;
begin
  for known in
    select v.* from vector_profiles v where v.profile in (select distinct g.profile from gone g)
  loop
    execute format('
      delete from %I v using gone g where g.profile = $1 and v.agent_id = g.agent_id and v.chunk_id = g.chunk_id',
      'chunk_vectors_' || known.number
    ) using known.profile;
  end loop;
  return null;
end $$;
create trigger chunk_embeddings_removed after delete on chunk_embeddings
  referencing old table as gone for each statement execute function spoke_drop_vectors();

-- Copies the next rows that stood there before the table did; the number of rows read, or null while another does.
create function spoke_fill_vectors(wanted text, most int) returns int language plpgsql as $$
declare
  known vector_profiles;
  seen int;
  last text[];
begin
  select * into known from vector_profiles where profile = wanted for update skip locked;
  if known.number is null then return null; end if;
  if known.filled then return 0; end if;
  -- Of all tenants, a batch at a time.
  select count(*), max(array[batch.tenant_id, batch.chunk_id]) into seen, last from (
    select tenant_id, chunk_id from chunk_embeddings
    where profile = wanted and (tenant_id, chunk_id) > (known.copied_tenant, known.copied_to)
    order by tenant_id, chunk_id limit most
  ) batch;
  execute format('
    insert into %I (agent_id, chunk_id, source_id, embedding)
    select c.agent_id, c.id, c.source_id, spoke_floats(e.embedding)::%s
    from chunk_embeddings e join chunks c on c.tenant_id = e.tenant_id and c.id = e.chunk_id
    where e.profile = $1 and (e.tenant_id, e.chunk_id) > ($2, $3) and (e.tenant_id, e.chunk_id) <= ($4, $5)
      and length(e.embedding) = $6
    -- None of them goes before its copy is there to go with it.
    for key share of c, e
    on conflict do nothing',
    'chunk_vectors_' || known.number, spoke_vector_type(known.dimensions)
  ) using wanted, known.copied_tenant, known.copied_to, last[1], last[2], known.dimensions * 4;
  update vector_profiles set copied_tenant = coalesce(last[1], copied_tenant), copied_to = coalesce(last[2], copied_to),
    filled = seen < most where profile = wanted;
  return seen;
end $$;

-- The nearest chunks of a large agent, by the index. The choice is the caller's and not the planner's, who takes the
-- index for agents that are read exactly in less time. Too few rows can come of it: the caller looks at their number.
-- How far the index looks around is the caller's to say, because it takes most of a search's time: `breadth` candidates
-- are kept while it walks.
create function spoke_nearest(vectors text, agent text, query text, sources jsonb, wanted int, breadth int)
returns setof text language plpgsql stable
  set enable_sort = off
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
declare
  kind text := (select spoke_vector_type(dimensions) from vector_profiles
    where 'chunk_vectors_' || number = vectors);
begin
  -- Not settings of the function, like those above: only a superuser may attach settings of an extension to a function
  -- where a session has not loaded its library, as in every session that migrates or restores a dump. They end with the
  -- transaction, which is the caller's one statement.
  perform set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', breadth::text, true),
    set_config('hnsw.max_scan_tuples', '200000', true), set_config('hnsw.scan_mem_multiplier', '4', true);
  return query execute format('
    select chunk_id from %I
    where agent_id = $1 and ($3 is null or source_id in (select jsonb_array_elements_text($3)))
    order by embedding <=> $2::%s limit $4', vectors, kind) using agent, query, sources, wanted;
end $$;
