-- Chunks and their vectors are found by tenant and id. The copies stay as they are: whoever reads them names an agent that was
-- found by its tenant.
create or replace function spoke_copy_vectors() returns trigger language plpgsql as $$
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

-- What stands in chunk_embeddings from before is copied in the order of its key. A copying that is under way begins anew: what
-- has its copy already keeps it.
alter table vector_profiles add column copied_tenant text not null default '';
update vector_profiles set copied_to = '' where not filled;

create or replace function spoke_fill_vectors(wanted text, most int) returns int language plpgsql as $$
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
