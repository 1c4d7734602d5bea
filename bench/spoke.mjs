/** Spoke for benchmarks: with a tenant, an agent, a key and existing knowledge. */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { PGlite } from "@electric-sql/pglite"
import { build } from "esbuild"
import pg from "pg"
import { documents } from "./corpus.mjs"
import { root, startSpoke, temporaryFolder, until } from "./machine.mjs"
import { dimensions, vectorOf } from "./model.mjs"

const operatorToken = "operator-of-the-benchmark"
export const owner = { email: "bench@example.com", password: "correct horse battery" }
const secret = "a secret of the benchmark, thirty-two bytes"

/** Settings that make the stub Spoke's provider. */
export const provider = (model) => ({
  OPENAI_API_KEY: "sk-bench",
  OPENAI_BASE_URL: `${model.url}/v1`,
  SPOKE_EMBEDDING_MODEL: "bench",
  SPOKE_EMBEDDING_DIMENSIONS: String(dimensions)
})

export const call = async (url, { method = "GET", headers = {}, body } = {}) => {
  const answer = await fetch(url, {
    method,
    headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) })
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${new URL(url).pathname} answered ${answer.status}: ${text}`)
  return { data: JSON.parse(text).data, cookie: answer.headers.getSetCookie()[0]?.split(";")[0] }
}

/**
 * A tenant, its agents with `settings`, and a key for each. Every turn gets passages, because
 * the scores of made-up texts are low.
 */
export const tenantOf = async (url, agents = 1, tenantOwner = owner, settings = {}) => {
  const post = (place, body, headers) => call(`${url}${place}`, { method: "POST", body, headers })
  const { data } = await post(
    "/api/operator/tenants",
    { name: "Bench", owner: tenantOwner },
    { authorization: `Bearer ${operatorToken}` }
  )
  const { cookie } = await post("/api/auth/login", tenantOwner, { "x-spoke-csrf": "1" })
  const session = { cookie, "x-spoke-csrf": "1" }
  const createdAgents = []
  for (let place = 0; place < agents; place++) {
    const { data: created } = await post(
      "/api/agents",
      { name: `Bench ${place}`, retrieval: { minScore: 0 }, ...settings },
      session
    )
    const agentId = created.agent.id
    const key = await post(`/api/agents/${agentId}/keys`, { name: "Bench", permissions: ["*"] }, session)
    createdAgents.push({ tenantId: data.tenant.id, agentId, key: key.data.secret })
  }
  return createdAgents
}

/** Bundles and imports a module of the service. */
export const moduleOf = async (entry) => {
  const file = path.join(root, `dist/bench-${path.basename(entry, ".ts")}.${process.pid}.mjs`)
  await build({
    entryPoints: [path.join(root, entry)],
    outfile: file,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    logLevel: "error"
  })
  const loaded = await import(pathToFileURL(file).href)
  fs.rmSync(file)
  return loaded
}

/** The terms of a chunk, with the service's own code. */
export const loadIndexRow = async () => (await moduleOf("src/search/IndexRow.ts")).indexRow

const idOf = (prefix, place) => `${prefix}_${String(place).padStart(26, "0")}`

const inserts = {
  documents: `insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
    select id, (select tenant_id from agents where id = $1), $1, $2, 1, uri, title, '\\x00' from unnest($3::text[], $4::text[], $5::text[]) as t (id, uri, title)`,
  chunks: `insert into chunks
      (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
    select id, (select tenant_id from agents where id = $1), $1, $2, 1, document, ordinal, content, '\\x00', tsv::tsvector, length, 1
    from unnest($3::text[], $4::text[], $5::int[], $6::text[], $7::text[], $8::int[])
      as t (id, document, ordinal, content, tsv, length)`,
  vectors: `insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, encoding, embedding)
    select (select tenant_id from agents where id = $1), id, $2, $1, 1, 1, decode(vector, 'base64')
    from unnest($3::text[], $4::text[]) as t (id, vector)`,
  native: `insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, encoding, source_id, vector)
    select (select tenant_id from agents where id = $1), id, $2, $1, 1, 2, $3, vector::halfvec
    from unnest($4::text[], $5::text[]) as t (id, vector)`
}

const columns = (rows) => (rows[0] ?? []).map((_, place) => rows.map((row) => row[place]))

/**
 * Writes a source of so many passages as ingestion would, with vectors; `run(text, values)` queries the database.
 * Numbers begin at `first`, and `text` returns the passage of a number. `native`: vectors are in pgvector's column.
 */
export const writeChunks = async (run, { agentId, tenantId }, passages, options = {}) => {
  const { first = 0, native = false, size = dimensions, text } = options
  const indexRow = await loadIndexRow()
  const { encodeVector, vectorText } = await moduleOf("src/domain/knowledge/StoredVector.ts")
  const profile = `bench/${size}`
  const sourceId = idOf("src", first)
  await run(
    `insert into sources (id, tenant_id, agent_id, type, name, status, config, live_generation, last_synced_at)
    values ($1, $2, $3, 'URL', 'Help', 'READY', '{"url": "https://help.example.com/", "autoSync": false}', 1, now())`,
    [sourceId, tenantId, agentId]
  )
  let lengths = 0
  let number = first
  const rows = { documents: [], chunks: [], vectors: [] }
  const flush = async () => {
    await run(inserts.documents, [agentId, sourceId, ...columns(rows.documents)])
    await run(inserts.chunks, [agentId, sourceId, ...columns(rows.chunks)])
    if (native) await run(inserts.native, [agentId, profile, sourceId, ...columns(rows.vectors)])
    else await run(inserts.vectors, [agentId, profile, ...columns(rows.vectors)])
    for (const list of Object.values(rows)) list.length = 0
  }
  for (const { passages: texts, title, uri } of documents(passages, { first, text })) {
    const document = idOf("doc", number)
    rows.documents.push([document, uri, title])
    for (const [ordinal, content] of texts.entries()) {
      const { length, tsv } = indexRow({ title, heading: "", content, english: true })
      const id = idOf("chk", number++)
      lengths += length
      rows.chunks.push([id, document, ordinal, content, tsv, length])
      const vector = vectorOf(content, size)
      rows.vectors.push([
        id,
        native ? vectorText(vector) : Buffer.from(encodeVector(vector)).toString("base64")
      ])
    }
    if (rows.chunks.length >= 1_000) await flush()
  }
  if (rows.chunks.length > 0) await flush()
  await run(
    `insert into agent_stats as old (tenant_id, agent_id, chunk_count, length_sum, version, profile, profile_since)
    values ((select tenant_id from agents where id = $1), $1, $2, $3, 1, $4, now())
    on conflict (tenant_id, agent_id) do update set chunk_count = old.chunk_count + excluded.chunk_count,
      length_sum = old.length_sum + excluded.length_sum, version = old.version + 1, profile = excluded.profile,
      profile_since = now()`,
    [agentId, passages, lengths, profile]
  )
}

const settings = (model, variables) => ({
  SPOKE_DATA_DIR: temporaryFolder(),
  SPOKE_OPERATOR_TOKEN: operatorToken,
  SPOKE_SECRET: secret,
  // The pages are served by this machine.
  SPOKE_FETCH_ALLOW: "127.0.0.1",
  ...(model !== undefined && provider(model)),
  ...variables
})

/**
 * Starts Spoke on its embedded database, with an agent for each number of `passages`, and the settings `agent`. The
 * service is stopped while they are written.
 */
export const embeddedSpoke = async (model, passages, { agent, variables, ...options } = {}) => {
  const serviceSettings = settings(model, variables)
  const first = await startSpoke(serviceSettings)
  const agents = await tenantOf(first.url, passages.length, owner, agent)
  await first.stop()
  await withEmbedded(serviceSettings, async (run) => {
    for (const [place, count] of passages.entries()) {
      if (count > 0) await writeChunks(run, agents[place], count, { first: place * 100_000_000, ...options })
    }
  })
  return { ...(await startSpoke(serviceSettings)), ...agents[0], agents, variables: serviceSettings }
}

/** Works on the database of a service that has been stopped. */
export const withEmbedded = async ({ SPOKE_DATA_DIR: folder }, use) => {
  const database = await PGlite.create({ dataDir: path.join(folder, "database") })
  try {
    return await use((text, values) => database.query(text, values))
  } finally {
    await database.close()
  }
}

/** Works on the database of a service on PostgreSQL. */
export const withServer = async (url, use) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await use((text, values) => client.query(text, values))
  } finally {
    await client.end()
  }
}

/**
 * Updates the planner's statistics of the tables with rows. Empty tables are left out: after an analysis they would
 * have plans for no rows at all, which a connection keeps until the server analyzes the table by itself, a minute later.
 */
const analyzeFilled = async (run) => {
  const { rows } = await run(
    "select quote_ident(relname) as name from pg_stat_user_tables where pg_relation_size(relid) > 0"
  )
  await run(`vacuum analyze ${rows.map(({ name }) => name).join(", ")}`)
}

/** Starts Spoke on PostgreSQL and, if there is one, Redis, with an agent for each number of `passages`. */
export const serverSpoke = async (
  model,
  { postgres, redis },
  passages,
  { agent, args, folder, variables, ...options } = {}
) => {
  const url = await postgres.database(`spoke_${randomUUID().slice(0, 8)}`)
  const serviceSettings = settings(model, {
    DATABASE_URL: url,
    ...(redis !== undefined && { REDIS_URL: redis.url }),
    ...variables
  })
  const spoke = await startSpoke(serviceSettings, args, folder)
  const agents = await tenantOf(spoke.url, passages.length, owner, agent)
  await withServer(url, async (run) => {
    const { rows } = await run(
      "select 1 from pg_attribute where attrelid = 'chunk_embeddings'::regclass and attname = 'vector'"
    )
    const native = rows.length > 0
    if (native) await run("set session_replication_role = replica")
    for (const [place, count] of passages.entries()) {
      if (count > 0)
        await writeChunks(run, agents[place], count, { first: place * 100_000_000, native, ...options })
    }
    await analyzeFilled(run)
  })
  return { ...spoke, ...agents[0], agents, databaseUrl: url, variables: serviceSettings }
}

export const keyHeader = ({ key }) => ({ "x-api-key": key })

export const retrieve = async (spoke, key, query, topK = 5) => {
  const { data } = await call(`${spoke.url}/v1/retrieve`, {
    method: "POST",
    headers: keyHeader({ key }),
    body: { query, topK }
  })
  return data.chunks
}

/** Waits until a search of the first agent finds the written chunks. */
export const searchable = (spoke, query) =>
  until("The first search", 120_000, async () =>
    (await retrieve(spoke, spoke.key, query)).length === 5 ? true : undefined
  )
