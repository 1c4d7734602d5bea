/** The tables of the two peers, with the same passages and vectors as Spoke has. */
import pg from "pg"
import { documents } from "../corpus.mjs"
import { dimensions, vectorOf } from "../model.mjs"

/** Without the extension there are no vectors, and the peers cannot search. */
export const fillTables = async (url, passages, size = dimensions) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`
    create extension if not exists vector;
    create table chunks (
      id bigint primary key, document_id text, source_name text, url text, content text, embedding vector(${size})
    );
    -- Else the planner compares all: it does not count what reading vectors out of line costs.
    alter table chunks alter column embedding set storage plain;
    create table ingested (
      id bigserial primary key, document_id text, source_name text, url text, content text, embedding vector(${size})
    );
    alter table ingested alter column embedding set storage plain;
    create index on ingested using hnsw (embedding vector_cosine_ops);
    create table conversations (id bigserial primary key, created_at timestamptz not null default now());
    create table messages (
      id bigserial primary key, conversation_id bigint not null references conversations, role text not null,
      content text not null, created_at timestamptz not null default now()
    );
    create index on messages (conversation_id, id)`)
  let number = 0
  for (const { passages: texts, title, uri } of documents(passages)) {
    const rows = texts.map((content) => ({
      id: number++,
      title,
      uri,
      content,
      vector: `[${vectorOf(content, size).join(",")}]`
    }))
    await client.query(
      `insert into chunks select id, uri, title, uri, content, vector::vector
      from jsonb_to_recordset($1::jsonb) as t (id bigint, title text, uri text, content text, vector text)`,
      [JSON.stringify(rows)]
    )
  }
  await client.query("create index on chunks using hnsw (embedding vector_cosine_ops)")
  await client.query("vacuum analyze")
  await client.end()
}
