/**
 * Writes a million chunks in minutes. PostgreSQL joins each from two of two thousand halves, with their words, lexemes and
 * vectors. No two chunks are the same.
 */
import { half, halves, line } from "./corpus.mjs"
import { sumOf } from "./model.mjs"
import { indexing } from "./spoke.mjs"

/** Rows per statement. */
const batch = 50_000
const perDocument = 10

const literal = (vector) => `[${vector.join(",")}]`

const template = async (run, size, indexRow) => {
  await run(`create temp table halves (
    place int primary key, content text not null, tsv tsvector not null, length int not null, sum vector(${size}) not null)`)
  const rows = Array.from({ length: 2 * halves }, (_, place) => {
    const content = half(place)
    const { length, tsv } = indexRow({ title: "", heading: "", content, english: true })
    return { place, content, tsv, length, sum: literal(sumOf(content, size)) }
  })
  await run(
    `insert into halves select place, content, tsv::tsvector, length, sum::vector
    from jsonb_to_recordset($1::jsonb) as t (place int, content text, tsv text, length int, sum text)`,
    [JSON.stringify(rows)]
  )
}

/** Titles have three times the weight of text, as in the service. */
const statements = (table) => ({
  documents: `
    insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
    select 'doc_' || lpad((n * ${perDocument})::text, 26, '0'), (select tenant_id from agents where id = $1), $1, $2, 1, 'https://help.example.com/' || n, 'Article ' || n, '\\x00'
    from generate_series($3::bigint / ${perDocument}, ($4::bigint - 1) / ${perDocument}) n`,
  chunks: `
    with made as (
      select n, 'topic' || n || ' ' || a.content || ' ' || b.content as content, a.tsv || b.tsv as tsv, a.length + b.length + 7 as length,
        l2_normalize(a.sum + b.sum) as embedding
      from generate_series($3::bigint, $4::bigint - 1) n
      join halves a on a.place = n % ${halves}
      join halves b on b.place = ${halves} + (n / ${halves} + 7 * n) % ${halves}
    ), written as (
      insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
      select 'chk_' || lpad(n::text, 26, '0'), (select tenant_id from agents where id = $1), $1, $2, 1, 'doc_' || lpad((n / ${perDocument} * ${perDocument})::text, 26, '0'),
        n % ${perDocument}, content, '\\x00',
        format('''articl'':1,2,3 ''%s'':4,5,6 ''topic%s'':7', n / ${perDocument}, n)::tsvector || tsv, length, 1
      from made
    )
    insert into ${table} (agent_id, source_id, chunk_id, embedding)
    select $1, $2, 'chk_' || lpad(n::text, 26, '0'), embedding from made`
})

/** Indexes that are faster to rebuild than to maintain. */
const slow = async (run, tables) =>
  (
    await run(
      `select indexname as name, indexdef as definition from pg_indexes
      where tablename = any($1) and indexdef ~* 'using (hnsw|gin) '`,
      [tables]
    )
  ).rows

/** The number of occurrences of each word; positions do not matter. */
const counted = async (run, tsv) =>
  (
    await run(
      "select string_agg(lexeme || ' ' || cardinality(positions), ',' order by lexeme collate \"C\") as words from unnest($1::tsvector)",
      [tsv]
    )
  ).rows[0].words

/** Checks that the rows are those that ingestion would write. */
const verify = async (run, indexRow, number) => {
  const { rows } = await run(
    "select c.content, c.tsv::text as tsv, c.length, d.title from chunks c join documents d on d.id = c.document_id where c.id = $1",
    [`chk_${String(number).padStart(26, "0")}`]
  )
  const [{ content, length, title, tsv }] = rows
  const expected = indexRow({ title, heading: "", content, english: true })
  const same =
    content === line(number) &&
    length === expected.length &&
    (await counted(run, tsv)) === (await counted(run, expected.tsv))
  if (!same) throw new Error(`Chunk ${number} is not what ingestion makes of its text.`)
}

/**
 * A source of `count` chunks of `line`s, numbered from `first`, both multiples of ten, with pgvector's copies in `table`.
 * Their vectors in `chunk_embeddings`, which no search of pgvector reads, are left out.
 */
export const grow = async (run, { agentId, tenantId }, count, { first, profile, size, table }) => {
  const indexRow = await indexing()
  const sourceId = `src_${String(first).padStart(26, "0")}`
  const indexes = await slow(run, ["chunks", table])
  await run("set session_replication_role = replica")
  await run("set maintenance_work_mem = '2GB'")
  for (const { name } of indexes) await run(`drop index ${name}`)
  await run(
    `insert into sources (id, tenant_id, agent_id, type, name, status, config, live_generation, last_synced_at)
    values ($1, $2, $3, 'URL', 'Help', 'READY', '{"url": "https://help.example.com/", "autoSync": false}', 1, now())`,
    [sourceId, tenantId, agentId]
  )
  await template(run, size, indexRow)
  const { chunks, documents } = statements(table)
  for (let from = first; from < first + count; from += batch) {
    const values = [agentId, sourceId, from, Math.min(from + batch, first + count)]
    await run(documents, values)
    await run(chunks, values)
  }
  await run("drop table halves")
  await run(
    `insert into agent_stats as old (tenant_id, agent_id, chunk_count, length_sum, version, profile, profile_since)
    select (select tenant_id from agents where id = $1), $1, count(*), coalesce(sum(length), 0), 1, $2, now() from chunks where agent_id = $1
    on conflict (tenant_id, agent_id) do update set chunk_count = excluded.chunk_count, length_sum = excluded.length_sum,
      version = old.version + 1, profile = excluded.profile, profile_since = now()`,
    [agentId, profile]
  )
  // The catalogue lists an index of a partitioned table without its partitions.
  for (const { definition } of indexes) await run(definition.replace(" ON ONLY ", " ON "))
  await run("set session_replication_role = origin")
  await run("vacuum analyze")
  await verify(run, indexRow, first + count - 1)
}
