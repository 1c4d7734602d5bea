-- As spoke_nearest before, which processes of before go on calling during an upgrade; how far the index looks around is the
-- caller's to say, because it takes most of a search's time: `breadth` candidates are kept while it walks.
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
  perform set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', breadth::text, true),
    set_config('hnsw.max_scan_tuples', '200000', true), set_config('hnsw.scan_mem_multiplier', '4', true);
  return query execute format('
    select chunk_id from %I
    where agent_id = $1 and ($3 is null or source_id in (select jsonb_array_elements_text($3)))
    order by embedding <=> $2::%s limit $4', vectors, kind) using agent, query, sources, wanted;
end $$;
