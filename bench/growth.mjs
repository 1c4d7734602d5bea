/**
 * Writes a million chunks in minutes. PostgreSQL joins each from two of two thousand halves, with their words, lexemes and
 * vectors. No two chunks are the same.
 */
import { half, halves, line } from "./corpus.mjs"
import { until } from "./machine.mjs"
import { sumOf } from "./model.mjs"
import { loadIndexRow } from "./spoke.mjs"

/** Rows per statement. */
const batch = 50_000
const perDocument = 10

const literal = (vector) => `[${vector.join(",")}]`

const createHalves = async (run, size, indexRow) => {
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

/** The vector of chunk `n`, from the sums of its halves `a` and `b`. */
const sumOfHalves = "l2_normalize(a.sum + b.sum)"

/** Titles have three times the weight of text, as in the service. */
const statements = (embedding) => ({
  documents: `
    insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
    select 'doc_' || lpad((n * ${perDocument})::text, 26, '0'), (select tenant_id from agents where id = $1), $1, $2, 1, 'https://help.example.com/' || n, 'Article ' || n, '\\x00'
    from generate_series($3::bigint / ${perDocument}, ($4::bigint - 1) / ${perDocument}) n`,
  chunks: `
    with made as (
      select n, 'topic' || n || ' ' || a.content || ' ' || b.content as content, a.tsv || b.tsv as tsv, a.length + b.length + 7 as length,
        ${embedding} as embedding
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
    insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, encoding, source_id, vector)
    select (select tenant_id from agents where id = $1), 'chk_' || lpad(n::text, 26, '0'), $5, $1, 1, 2, $2, embedding::halfvec
    from made`
})

/** Indexes of words, which are faster to rebuild than to maintain. */
const textIndexes = async (run) =>
  (
    await run(
      `select indexname as name, indexdef as definition from pg_indexes
      where tablename = 'chunks' and indexdef ~* 'using gin '`
    )
  ).rows

/** The number of occurrences of each word; positions do not matter. */
const wordCounts = async (run, tsv) =>
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
    (await wordCounts(run, tsv)) === (await wordCounts(run, expected.tsv))
  if (!same) throw new Error(`Chunk ${number} is not what ingestion makes of its text.`)
}

/** The index of the agent's vectors, which a worker builds: seconds until it is there. */
const waitForIndex = async (run, agentId) => {
  const started = performance.now()
  await until("The index of the vectors", 3_600_000, async () => {
    const { rows } = await run(
      `select from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indisvalid and starts_with(c.relname, 'vectors_of_' || $1)`,
      [agentId]
    )
    return rows.length > 0 ? true : undefined
  })
  return (performance.now() - started) / 1_000
}

/**
 * Writes a source of `count` chunks of `line`s, numbered from `first`, both multiples of ten. `embedding` is SQL for the
 * vector of chunk `n`. The agent counts as empty, so its searches find nothing, and no worker builds an index.
 */
export const writeUnsearched = async (run, { agentId, tenantId }, count, options) => {
  const { embedding = sumOfHalves, first, profile, size } = options
  const indexRow = await loadIndexRow()
  const sourceId = `src_${String(first).padStart(26, "0")}`
  await run("update agent_stats set chunk_count = 0 where agent_id = $1", [agentId])
  const { rows: oldIndexes } = await run(
    "select indexname as name from pg_indexes where starts_with(indexname, 'vectors_of_' || $1)",
    [agentId]
  )
  for (const { name } of oldIndexes) await run(`drop index concurrently if exists "${name}"`)
  const indexes = await textIndexes(run)
  await run("set session_replication_role = replica")
  await run("set maintenance_work_mem = '2GB'")
  for (const { name } of indexes) await run(`drop index ${name}`)
  await run(
    `insert into sources (id, tenant_id, agent_id, type, name, status, config, live_generation, last_synced_at)
    values ($1, $2, $3, 'URL', 'Help', 'READY', '{"url": "https://help.example.com/", "autoSync": false}', 1, now())`,
    [sourceId, tenantId, agentId]
  )
  await createHalves(run, size, indexRow)
  const { chunks, documents } = statements(embedding)
  for (let from = first; from < first + count; from += batch) {
    const values = [agentId, sourceId, from, Math.min(from + batch, first + count)]
    await run(documents, values)
    await run(chunks, [...values, profile])
  }
  await run("drop table halves")
  for (const { definition } of indexes) await run(definition)
  await run("set session_replication_role = origin")
  await run("vacuum analyze")
  await verify(run, indexRow, first + count - 1)
}

/** Like {@link writeUnsearched}, then waits for the index of an agent that is large, and returns how many seconds that took. */
export const grow = async (run, agent, count, options) => {
  const { agentId } = agent
  await writeUnsearched(run, agent, count, options)
  await run(
    `insert into agent_stats as old (tenant_id, agent_id, chunk_count, length_sum, version, profile, profile_since)
    select (select tenant_id from agents where id = $1), $1, count(*), coalesce(sum(length), 0), 1, $2, now() from chunks where agent_id = $1
    on conflict (tenant_id, agent_id) do update set chunk_count = excluded.chunk_count, length_sum = excluded.length_sum,
      version = old.version + 1, profile = excluded.profile, profile_since = now()`,
    [agentId, options.profile]
  )
  const { rows } = await run("select chunk_count::int as chunks from agent_stats where agent_id = $1", [
    agentId
  ])
  return rows[0].chunks > 20_000 ? waitForIndex(run, agentId) : 0
}
