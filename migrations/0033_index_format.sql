-- spoke: no transaction
-- Documents whose chunks are indexed in an older format than the present one, which is 3.
create index concurrently documents_of_old_format on documents (agent_id, id) where index_format < 3;
drop index concurrently if exists documents_outdated;
