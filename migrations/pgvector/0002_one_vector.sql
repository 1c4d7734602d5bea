-- A vector is stored once: as halfvec in chunk_embeddings, in its row. Spoke converts the others in the background, and
-- removes the copies of 0.1.0 (chunk_vectors_N) when no process of that version is left.
alter table chunk_embeddings add column vector halfvec;
-- Of the chunk, where `vector` is set: searches within sources read no chunks.
alter table chunk_embeddings add column source_id text;
-- In the row up to 4,000 dimensions: fetched from outside it, a scan takes four times as long. The ids, too, which would
-- be moved out of a row of more than 2,000 bytes first.
alter table chunk_embeddings alter column vector set storage main, alter column tenant_id set storage main,
  alter column chunk_id set storage main, alter column profile set storage main,
  alter column agent_id set storage main, alter column source_id set storage main;
alter table chunk_embeddings alter column embedding drop not null;
alter table chunk_embeddings add constraint chunk_embeddings_encoding check (
  case when encoding = 2 then vector is not null and source_id is not null and embedding is null
    else vector is null and embedding is not null end
) not valid;

create or replace function stored_vector(e chunk_embeddings) returns bytea language sql stable parallel safe as $$
  select coalesce(e.embedding, halfvec_send(e.vector))
$$;

-- A worker of 0.1.0 that reads a source again copies vectors that it does not see. They are left out, and computed anew.
create function skip_unseen_vector() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger chunk_embeddings_unseen before insert on chunk_embeddings for each row
  when (new.embedding is null and new.vector is null) execute function skip_unseen_vector();

-- The name of the index of an agent's vectors; 63 characters are the most.
create function vector_index_name(agent text, of_profile text) returns text language sql immutable parallel safe as $$
  select 'vectors_of_' || agent || '_' || left(md5(of_profile), 8)
$$;

-- The nearest chunks of an agent, by its index. The choice is the caller's and not the planner's, who takes the index for
-- agents that are read exactly in less time. Too few rows can come of it: the caller looks at their number. While it walks,
-- the index keeps `breadth` candidates, which takes most of a search's time. The agent stands in the text, because the
-- condition of its index does.
create function nearest_chunks(
  tenant text, agent text, of_profile text, dimensions int, query text, sources jsonb, wanted int, breadth int
) returns setof text language plpgsql stable
  set enable_sort = off
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
begin
  -- Not settings of the function, like those above: only a superuser may attach settings of an extension to a function
  -- where a session has not loaded its library, as in every session that migrates or restores a dump. They end with the
  -- transaction, which is the caller's one statement.
  perform set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', breadth::text, true),
    set_config('hnsw.max_scan_tuples', '200000', true), set_config('hnsw.scan_mem_multiplier', '4', true);
  return query execute format('
    select chunk_id from chunk_embeddings
    where tenant_id = %L and agent_id = %L and profile = %L and encoding = 2 and vector_dims(vector) = %s
      and ($2 is null or source_id in (select jsonb_array_elements_text($2)))
    order by vector::halfvec(%s) <=> $1::halfvec(%s) limit $3', tenant, agent, of_profile, dimensions, dimensions, dimensions)
    using query, sources, wanted;
end $$;
