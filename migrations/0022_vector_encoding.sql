-- Vectors are stored as float16. `encoding` says what a row holds: 0, float32 in `embedding`, as 0.1.0 writes it and later
-- versions convert it in the background; 1, float16 in `embedding`, in the binary form of pgvector's halfvec; 2, pgvector's
-- column `vector` (migrations/pgvector).
alter table chunk_embeddings add column encoding smallint not null default 0;

-- The bytes of a vector, however it is stored. pgvector's migration replaces the function.
create function stored_vector(e chunk_embeddings) returns bytea language sql stable parallel safe as $$
  select e.embedding
$$;

-- False: a process of 0.1.0.
alter table instances add column reads_float16 boolean not null default false;
