-- spoke: no transaction
-- What is still to be converted. Empty afterwards.
create index concurrently chunk_embeddings_float32 on chunk_embeddings (tenant_id, agent_id) where encoding = 0;
