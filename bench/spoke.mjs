/** Spoke as a benchmark runs it: with a tenant, an agent, a key and knowledge that is there already. */
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
const owner = { email: "bench@example.com", password: "correct horse battery" }
export const secret = "a secret of the benchmark, thirty-two bytes"

/** The stub as Spoke's provider. */
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

/** A tenant, its agents and a key for each. */
export const tenantOf = async (url, agents = 1) => {
  const post = (place, body, headers) => call(`${url}${place}`, { method: "POST", body, headers })
  const { data } = await post(
    "/api/operator/tenants",
    { name: "Bench", owner },
    { authorization: `Bearer ${operatorToken}` }
  )
  const { cookie } = await post("/api/auth/login", owner, { "x-spoke-csrf": "1" })
  const session = { cookie, "x-spoke-csrf": "1" }
  const made = []
  for (let place = 0; place < agents; place++) {
    const { data: created } = await post("/api/agents", { name: `Bench ${place}` }, session)
    const agentId = created.agent.id
    const key = await post(`/api/agents/${agentId}/keys`, { name: "Bench", permissions: ["*"] }, session)
    made.push({ tenantId: data.tenant.id, agentId, key: key.data.secret })
  }
  return made
}

/** What the service makes of a chunk's words, with the code of the service. */
const indexing = async () => {
  const file = path.join(root, `dist/bench-indexing.${process.pid}.mjs`)
  await build({
    entryPoints: [path.join(root, "src/search/IndexRow.ts")],
    outfile: file,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    logLevel: "error"
  })
  const { indexRow } = await import(pathToFileURL(file).href)
  fs.rmSync(file)
  return indexRow
}

const ids = (prefix, place) => `${prefix}_${String(place).padStart(26, "0")}`

/** A source of as many passages as ingestion would have left it, vectors included; `run(text, values)` is the database. */
export const know = async (run, { agentId, tenantId }, passages, { first = 0, size = dimensions } = {}) => {
  const indexRow = await indexing()
  const profile = `bench/${size}`
  const sourceId = ids("src", first)
  await run(
    `insert into sources (id, tenant_id, agent_id, type, name, status, config, live_generation, last_synced_at)
    values ($1, $2, $3, 'URL', 'Help', 'READY', '{"url": "https://help.example.com/", "autoSync": false}', 1, now())`,
    [sourceId, tenantId, agentId]
  )
  let lengths = 0
  let number = first
  const rows = { documents: [], chunks: [], vectors: [] }
  const flush = async () => {
    await run(
      `insert into documents (id, agent_id, source_id, generation, uri, title, content_hash)
      select id, $2, $3, 1, uri, title, '\\x00' from jsonb_to_recordset($1::jsonb) as t (id text, uri text, title text)`,
      [JSON.stringify(rows.documents), agentId, sourceId]
    )
    await run(
      `insert into chunks (id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
      select id, $2, $3, 1, document, ordinal, content, '\\x00', tsv::tsvector, length, 1
      from jsonb_to_recordset($1::jsonb) as t (id text, document text, ordinal int, content text, tsv text, length int)`,
      [JSON.stringify(rows.chunks), agentId, sourceId]
    )
    await run(
      `insert into chunk_embeddings (chunk_id, profile, agent_id, version, embedding)
      select id, $2, $3, 1, decode(vector, 'base64') from jsonb_to_recordset($1::jsonb) as t (id text, vector text)`,
      [JSON.stringify(rows.vectors), profile, agentId]
    )
    for (const list of Object.values(rows)) list.length = 0
  }
  for (const { passages: texts, title, uri } of documents(passages)) {
    const document = ids("doc", number)
    rows.documents.push({ id: document, uri, title })
    for (const [ordinal, content] of texts.entries()) {
      const { length, tsv } = indexRow({ title, heading: "", content })
      const id = ids("chk", number++)
      lengths += length
      rows.chunks.push({ id, document, ordinal, content, tsv, length })
      const vector = Buffer.from(vectorOf(content, size).buffer).toString("base64")
      rows.vectors.push({ id, vector })
    }
    if (rows.chunks.length >= 500) await flush()
  }
  if (rows.chunks.length > 0) await flush()
  await run(
    `insert into agent_stats (agent_id, chunk_count, length_sum, version, profile, profile_since)
    values ($1, $2, $3, 1, $4, now())
    on conflict (agent_id) do update set chunk_count = excluded.chunk_count, length_sum = excluded.length_sum,
      version = agent_stats.version + 1, profile = excluded.profile, profile_since = now()`,
    [agentId, passages, lengths, profile]
  )
}

const shared = () => ({ SPOKE_OPERATOR_TOKEN: operatorToken, SPOKE_SECRET: secret })

/** On its embedded database; the service is restarted after the knowledge has been written. */
export const embeddedSpoke = async (model, passages, variables = {}) => {
  const folder = temporaryFolder()
  const all = { SPOKE_DATA_DIR: folder, ...shared(), ...provider(model), ...variables }
  const first = await startSpoke(all)
  const [agent] = await tenantOf(first.url)
  await first.stop()
  if (passages > 0) {
    const database = await PGlite.create({ dataDir: path.join(folder, "database") })
    await know((text, values) => database.query(text, values), agent, passages)
    await database.close()
  }
  return { ...(await startSpoke(all)), ...agent, variables: all }
}

/** On PostgreSQL and, where there is one, Redis. */
export const serverSpoke = async (model, { postgres, redis }, passages, variables = {}) => {
  const url = await postgres.database(`spoke_${randomUUID().slice(0, 8)}`)
  const all = {
    SPOKE_DATA_DIR: temporaryFolder(),
    DATABASE_URL: url,
    ...(redis !== undefined && { REDIS_URL: redis.url }),
    ...shared(),
    ...provider(model),
    ...variables
  }
  const spoke = await startSpoke(all)
  const [agent] = await tenantOf(spoke.url)
  if (passages > 0) {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await know((text, values) => client.query(text, values), agent, passages)
    await client.query("vacuum analyze")
    await client.end()
  }
  return { ...spoke, ...agent, databaseUrl: url, variables: all }
}

export const keyHeader = ({ key }) => ({ "x-api-key": key })

/** Until a search answers with what was written. */
export const searchable = (spoke, query) =>
  until("The first search", 120_000, async () => {
    const { data } = await call(`${spoke.url}/v1/retrieve`, {
      method: "POST",
      headers: keyHeader(spoke),
      body: { query, topK: 5 }
    })
    return data.chunks.length === 5 ? true : undefined
  })
