/**
 * What a stored vector takes, before and now: the database of release 0.1.0 with pgvector, its vectors in three places,
 * is upgraded by today's service while an agent is searched. Measured are bytes for each chunk (tables and indexes of
 * vectors), the rate of the conversion, of building the index, and of the copying that 0.1.0 did.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { line, lineQuestion } from "../corpus.mjs"
import { load } from "../load.mjs"
import { root, rounded, startSpoke, until } from "../machine.mjs"
import { vectorOf } from "../model.mjs"
import { loadIndexRow, keyHeader, serverSpoke, withServer } from "../spoke.mjs"

const small = 1_000
const batch = 1_000

const migrationsOf = (folder) =>
  fs
    .readdirSync(path.join(root, "migrations", folder))
    .filter((name) => name.endsWith(".sql"))
    .toSorted()

/** The tables of 0.1.0 for pgvector, which its processes created. */
const createCopyTables = async (run, profile, size) => {
  await run(fs.readFileSync(path.join(root, "migrations/pgvector", migrationsOf("pgvector")[0]), "utf8"))
  await run("select spoke_vector_table($1, $2)", [profile, size])
}

/** Chunks with their vectors as 0.1.0 stored them: float32 beside the text, a copy in the table of pgvector, its index. */
const writeFormerChunks = async (run, { agentId, tenantId }, count, { profile, size }) => {
  const indexRow = await loadIndexRow()
  const sourceId = `src_${String(900).padStart(26, "0")}`
  await run("set session_replication_role = replica")
  await run(
    `insert into sources (id, tenant_id, agent_id, type, name, status, config, live_generation, last_synced_at)
    values ($1, $2, $3, 'URL', 'Help', 'READY', '{"url": "https://help.example.com/", "autoSync": false}', 1, now())`,
    [sourceId, tenantId, agentId]
  )
  await run(
    `insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
    values ('doc_former', $1, $2, $3, 1, 'https://help.example.com/', 'Help', '\\x00')`,
    [tenantId, agentId, sourceId]
  )
  const { rows } = await run(
    `select indexname as name, indexdef as definition from pg_indexes
    where tablename = 'chunk_vectors_1' and indexdef ~* 'using hnsw'`
  )
  for (const { name } of rows) await run(`drop index ${name}`)
  let lengths = 0
  for (let from = 0; from < count; from += batch) {
    const ids = []
    const values = { content: [], tsv: [], length: [], bytes: [], text: [] }
    for (let number = from; number < Math.min(count, from + batch); number++) {
      const content = line(number)
      const { length, tsv } = indexRow({ title: "Help", heading: "", content, english: true })
      const vector = vectorOf(content, size)
      ids.push(`chk_${String(900_000_000 + number).padStart(26, "0")}`)
      lengths += length
      values.content.push(content)
      values.tsv.push(tsv)
      values.length.push(length)
      values.bytes.push(Buffer.from(vector.buffer).toString("base64"))
      values.text.push(`[${vector.join(",")}]`)
    }
    await run(
      `insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
      select id, $1, $2, $3, 1, 'doc_former', $4 + place, content, '\\x00', tsv::tsvector, length, 1
      from unnest($5::text[], $6::text[], $7::text[], $8::int[]) with ordinality as t (id, content, tsv, length, place)`,
      [tenantId, agentId, sourceId, from, ids, values.content, values.tsv, values.length]
    )
    await run(
      `insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
      select $1, id, $2, $3, 1, decode(bytes, 'base64') from unnest($4::text[], $5::text[]) as t (id, bytes)`,
      [tenantId, profile, agentId, ids, values.bytes]
    )
    await run(
      `insert into chunk_vectors_1 (agent_id, source_id, chunk_id, embedding)
      select $1, $2, id, vector::vector from unnest($3::text[], $4::text[]) as t (id, vector)`,
      [agentId, sourceId, ids, values.text]
    )
  }
  await run("set maintenance_work_mem = '2GB'")
  for (const { definition } of rows) await run(definition.replace(" ON ONLY ", " ON "))
  await run(
    `insert into agent_stats (tenant_id, agent_id, chunk_count, length_sum, version, profile, profile_since)
    values ($1, $2, $3, $4, 1, $5, now())`,
    [tenantId, agentId, count, lengths, profile]
  )
  await run("set session_replication_role = origin")
  await run("update vector_profiles set filled = true")
}

/** Bytes of all tables and indexes that hold vectors or find them, for each vector. */
const bytesOf = async (run) => {
  await run("vacuum analyze chunk_embeddings")
  const { rows } = await run(`
    with recursive tables as (
      select oid from pg_class where relname = 'chunk_embeddings' or relname ~ '^chunk_vectors_\\d+$'
      union all select inhrelid from pg_inherits join tables on inhparent = tables.oid
    )
    select (sum(pg_total_relation_size(oid)) + coalesce(pg_relation_size(to_regclass('chunks_agent_id')), 0))::float8 as bytes,
      (select count(*) from chunk_embeddings)::float8 as vectors from tables`)
  return Math.round(rows[0].bytes / rows[0].vectors)
}

/** Vectors a second that 0.1.0 copied into a table of pgvector, the index included. */
const formerRate = async (run, profile, size, count) => {
  await run("select spoke_vector_table('again', $1)", [size])
  await run("set session_replication_role = replica")
  await run(
    `insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
    select tenant_id, chunk_id, 'again', agent_id, version, embedding from chunk_embeddings
    where profile = $1 and encoding = 0 order by tenant_id, chunk_id limit $2`,
    [profile, count]
  )
  await run("set session_replication_role = origin")
  const started = performance.now()
  for (let copied = 0; copied < count; copied += 250) await run("select spoke_fill_vectors('again', 250)")
  const seconds = (performance.now() - started) / 1_000
  await run("delete from chunk_embeddings where profile = 'again'")
  await run("delete from vector_profiles where profile = 'again'")
  await run("drop table chunk_vectors_2")
  return Math.round(count / seconds)
}

/** Upgrades the database with today's service: seconds until all vectors are converted, and until the index exists. */
const measureUpgrade = async (run, service, few, { progress, total }) => {
  const started = performance.now()
  const secondsSinceStart = () => (performance.now() - started) / 1_000
  const ask = async (text) => (await run(text)).rows[0]
  const spoke = await startSpoke({ ...service.variables, SPOKE_VECTOR: "pgvector", LOG_LEVEL: "info" })
  let isOver = false
  const searches = { requests: 0, errors: 0, slowestMs: 0 }
  const searchLoop = (async () => {
    while (!isOver) {
      const target = {
        url: `${spoke.url}/v1/retrieve`,
        headers: keyHeader(few),
        body: (number) => JSON.stringify({ query: lineQuestion(number, small), topK: 5 })
      }
      const { errors, p99, requests } = await load(target, { clients: 1, each: 20 })
      searches.requests += requests
      searches.errors += errors
      searches.slowestMs = Math.max(searches.slowestMs, p99)
    }
  })()
  const readySeconds = secondsSinceStart()
  await until("The conversion", 3_600_000, async () => {
    const { left } = await ask("select count(*)::int as left from chunk_embeddings where encoding < 2")
    return left === 0 ? true : undefined
  })
  const conversionSeconds = secondsSinceStart() - readySeconds
  progress(`${total} vectors converted in ${Math.round(conversionSeconds)} s`)
  await until("The removal of the copies", 120_000, async () => {
    const { gone } = await ask("select to_regclass('vector_profiles') is null as gone")
    return gone ? true : undefined
  })
  const indexStarted = performance.now()
  await until("The index", 3_600_000, async () => {
    const { valid } = await ask(`select exists (select from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indisvalid and starts_with(c.relname, 'vectors_of_')) as valid`)
    return valid ? true : undefined
  })
  const indexSeconds = (performance.now() - indexStarted) / 1_000
  progress(`indexed in ${Math.round(indexSeconds)} s`)
  isOver = true
  await searchLoop
  await spoke.stop()
  return {
    convertedPerSecond: Math.round(total / conversionSeconds),
    indexedPerSecond: Math.round(total / indexSeconds),
    perSecond: Math.round(total / (conversionSeconds + indexSeconds)),
    searches
  }
}

export const storage = async ({ chunks, model, postgres, progress, size }) => {
  const profile = `bench/${size}`
  const service = await serverSpoke(model, { postgres }, [small, 0], {
    variables: { SPOKE_EMBEDDING_DIMENSIONS: String(size), SPOKE_VECTOR: "in-process" },
    size,
    text: line
  })
  await service.stop()
  // One agent is searched while the vectors of the other are converted.
  const [few, many] = service.agents
  return withServer(service.databaseUrl, async (run) => {
    await run("create extension vector")
    await createCopyTables(run, profile, size)
    await writeFormerChunks(run, many, chunks, { profile, size })
    await run("vacuum full chunk_embeddings")
    const before = await bytesOf(run)
    progress(`0.1.0: ${before} bytes a chunk`)
    const copiedPerSecond = await formerRate(run, profile, size, 2_000)
    progress(`0.1.0: ${copiedPerSecond} vectors a second`)
    const conversion = await measureUpgrade(run, service, few, { progress, total: chunks })
    const upgraded = await bytesOf(run)
    await run("vacuum full chunk_embeddings")
    const after = await bytesOf(run)
    await run(
      `drop index ${(await run("select indexname as name from pg_indexes where starts_with(indexname, 'vectors_of_')")).rows[0].name}`
    )
    const small = await bytesOf(run)
    return {
      dimensions: size,
      chunks,
      bytes: { before, after, upgraded, withoutIndex: small, ratio: rounded(after / before) },
      former: { copiedPerSecond },
      ...conversion,
      timesFormer: rounded(conversion.perSecond / copiedPerSecond)
    }
  })
}
