-- The nearest chunks of an agent, by its index. The index returns at most 1,000 candidates at a time, sorted. For a
-- larger `breadth` it continues with the next ones, which may include nearer ones, so all of them are sorted again. The
-- planner takes them for sorted: hence the addition.
-- Within sources it continues until it has found `wanted` chunks. Too few rows can come of it: the caller checks their
-- number.
create or replace function nearest_chunks(
  tenant text, agent text, of_profile text, dimensions int, query text, sources jsonb, wanted int, breadth int
) returns setof text language plpgsql stable
  set enable_sort = off
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
declare
  rounds int := case when sources is null then ceil(breadth / 1000.0) else 1 end;
begin
  -- Not settings of the function, like those above: only a superuser may attach settings of an extension to a function
  -- where a session has not loaded its library, as in every session that migrates or restores a dump. They end with the
  -- transaction, which is the caller's one statement.
  perform set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.ef_search', least(1000, ceil(breadth::float8 / rounds))::text, true),
    set_config('hnsw.max_scan_tuples', '200000', true), set_config('hnsw.scan_mem_multiplier', '4', true);
  return query execute format('
    select chunk_id from (
      select chunk_id, vector::halfvec(%1$s) <=> $1::halfvec(%1$s) as distance from chunk_embeddings
      where tenant_id = %2$L and agent_id = %3$L and profile = %4$L and encoding = 2 and vector_dims(vector) = %1$s
        and ($2 is null or source_id in (select jsonb_array_elements_text($2)))
      order by vector::halfvec(%1$s) <=> $1::halfvec(%1$s) limit $4
    ) candidates order by distance + 0 limit $3', dimensions, tenant, agent, of_profile)
    using query, sources, wanted, case when rounds = 1 then wanted else breadth end;
end $$;
