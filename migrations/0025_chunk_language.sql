-- Chunks that are not English have other index terms, and no vector of a model that knows only English.
alter table chunks add column english boolean not null default true;

-- How the chunks of a document are indexed. Those of before, and those that a process of before still adds, are indexed
-- anew in the background; until then they are found as they were.
alter table documents add column index_format smallint not null default 1;
create index documents_outdated on documents (agent_id, id) where index_format < 2;

-- Whether an agent has any such chunk is asked at every search.
create index chunks_not_english on chunks (agent_id) where not english;
