-- spoke: no transaction
-- The comparison of passages reads the chunks of an agent in this order, a few at a time. All chunks of one reading have
-- the same version: by the index without ids, each batch read all of them.
create index concurrently chunks_agent_order on chunks (tenant_id, agent_id, version, id);
drop index concurrently if exists chunks_agent_version;
