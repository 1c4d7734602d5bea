-- spoke: no transaction
-- What is still to be converted. Empty afterwards.
create index concurrently chunk_embeddings_bytes on chunk_embeddings (tenant_id, agent_id) where encoding < 2;
alter table chunk_embeddings validate constraint chunk_embeddings_encoding;
