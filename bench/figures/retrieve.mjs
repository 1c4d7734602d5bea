/**
 * `POST /v1/retrieve` over 5,000 chunks beside the same search in bare SQL and by hand; then how it grows with what other
 * agents know and with what an agent knows itself, and how much of an exact search the index finds.
 */
import { line, lineQuestion, question } from "../corpus.mjs"
import { grow } from "../growth.mjs"
import { alternate, load } from "../load.mjs"
import { rounded, startScript, startSpoke, watchMemory } from "../machine.mjs"
import { vectorOf } from "../model.mjs"
import {
  embeddedSpoke,
  keyHeader,
  writeChunks,
  moduleOf,
  searchable,
  serverSpoke,
  withEmbedded,
  withServer
} from "../spoke.mjs"

/** Vectors of the growing collection are short, or a million would take an hour to index. */
const size = 64
const small = 1_000
const nearestCount = 10

const body = (ask, passages, topK) => (number) => JSON.stringify({ query: ask(number, passages), topK })

const spokeTarget = (service, key, ask, passages, topK = 5) => ({
  url: `${service.url}/v1/retrieve`,
  pid: service.pid,
  headers: keyHeader({ key }),
  body: body(ask, passages, topK)
})

const peerTarget = ({ pid, url }, ask, passages, topK = 5) => ({
  url: `${url}/retrieve`,
  pid,
  body: body(ask, passages, topK)
})

const p50 = (result) => result.p50
const perSecond = (result) => result.perSecond

const ratiosOf = ({ ratio, results }, read) =>
  Object.fromEntries(
    ["server", "embedded"]
      .filter((engine) => engine in results)
      .map((engine) => [
        engine,
        Object.fromEntries(
          ["bare", "handwritten"]
            .filter((peer) => peer in results)
            .map((peer) => [peer, ratio(engine, peer, read)])
        )
      ])
  )

const sideBySide = async ({ passages, postgres, progress, quick, rounds, seconds, services }) => {
  const { embedded, peers, server } = await services()
  const targets = {
    ...(peers && {
      bare: peerTarget(peers.bare, question, passages),
      handwritten: peerTarget(peers.handwritten, question, passages)
    }),
    ...(server && { server: spokeTarget(server, server.key, question, passages) }),
    embedded: spokeTarget(embedded, embedded.key, question, passages)
  }
  const database = postgres?.pid
  for (const target of Object.values(targets)) await load(target, { clients: 8, each: quick ? 5 : 50 })
  const out = []
  for (const clients of [1, 16]) {
    const run = await alternate(targets, rounds, { clients, seconds, database }, progress)
    out.push({
      clients,
      ...run.results,
      ratios: { p50: ratiosOf(run, p50), perSecond: ratiosOf(run, perSecond) }
    })
  }
  return out
}

/** Candidates of a search for ten chunks. */
const candidates = 80

/**
 * Recall of the index of a large agent compared with an exact search: of the ten nearest chunks, and of all candidates. A
 * smaller agent has no index, and is searched exactly.
 */
const recallOf = async (run, { agentId, tenantId }, chunks, queries) => {
  if (chunks <= 20_000) return { nearestTen: 1, nearest80: 1 }
  const { breadthOf } = await moduleOf("src/capabilities/VectorSearch/PgvectorCandidates.ts")
  const { vectorText } = await moduleOf("src/domain/knowledge/StoredVector.ts")
  const shares = { ten: 0, all: 0 }
  for (let number = 0; number < queries; number++) {
    const vector = vectorText(vectorOf(lineQuestion(number + 5_000_000, chunks), size))
    const { rows: near } = await run("select nearest_chunks($1, $2, $3, $4, $5, null, $6, $7) as id", [
      tenantId,
      agentId,
      `bench/${size}`,
      size,
      vector,
      candidates,
      breadthOf(chunks, candidates)
    ])
    const { rows: exact } = await run(
      `select chunk_id as id from chunk_embeddings where tenant_id = $1 and agent_id = $2
      order by (vector <#> $3::halfvec) + 0 limit $4`,
      [tenantId, agentId, vector, candidates]
    )
    const found = new Set(near.map(({ id }) => id))
    const share = (count) => exact.slice(0, count).filter(({ id }) => found.has(id)).length / count
    shares.ten += share(nearestCount) / queries
    shares.all += share(candidates) / queries
  }
  return { nearestTen: rounded(shares.ten), nearest80: rounded(shares.all) }
}

/** By the index, as in a table that holds nothing else. */
const bareOptions = "-c search_path=bare,public -c enable_sort=off -c enable_seqscan=off"

/** The bare peer searches Spoke's own vectors of the large agent. */
const view = (agentId) => `
  create schema bare;
  create view bare.chunks as
    select c.id, d.uri as document_id, d.title as source_name, d.uri as url, c.content, v.vector::halfvec(${size}) as embedding
    from chunk_embeddings v join chunks c on c.tenant_id = v.tenant_id and c.id = v.chunk_id
    join documents d on d.tenant_id = c.tenant_id and d.id = c.document_id
    where v.agent_id = '${agentId}' and v.profile = 'bench/${size}' and v.encoding = 2 and vector_dims(v.vector) = ${size}`

/** One size: the small agent, which does not change, and the large one, alternating with a constant load. */
const measureSize = async (service, chunks, peers, { progress, rounds, seconds }) => {
  const [few, many] = service.agents
  const targets = {
    small: spokeTarget(service, few.key, lineQuestion, small),
    large: spokeTarget(service, many.key, lineQuestion, chunks),
    ...peers
  }
  for (const target of Object.values(targets)) await load(target, { clients: 1, each: 20 })
  const run = await alternate(targets, rounds, { clients: 1, seconds }, progress)
  return {
    chunks,
    smallMs: run.results.small.p50,
    largeMs: run.results.large.p50,
    ...(peers?.bare && {
      bareLargeMs: run.results.bare.p50,
      largeOverBare: run.ratio("large", "bare", p50)
    }),
    reference: run.ratio("small", "steady", p50),
    errors: Object.values(run.results).reduce((sum, { errors }) => sum + errors, 0)
  }
}

/** Ratio of the small agent's search times to those at the first size. */
const growth = (sizes) =>
  sizes.map(({ reference, ...rest }) => ({
    ...rest,
    smallAgainstFirst: rounded(reference / sizes[0].reference)
  }))

const variables = { SPOKE_EMBEDDING_DIMENSIONS: String(size) }

/** A constant load, which measures the noise of the machine. */
const steadyOf = (bare, passages) => peerTarget(bare, question, passages)

/** A size that is estimated to take longer than `maxGrowthSeconds` is made smaller, by steps of so many chunks. */
const step = 50_000
/** Ratio of the index's time for a chunk among ten times as many. */
const indexSlowdown = 1.3

const growServer = async (world, sizes) => {
  const { databases, maxGrowthSeconds, model, passages, progress, quick, services } = world
  const { postgres, redis } = await databases()
  const { peers } = await services()
  const stub = await model()
  const service = await serverSpoke(stub, { postgres, redis }, [small, 0], { variables, size, text: line })
  const many = service.agents[1]
  const bare = await startScript("peers/bare.mjs", [], {
    MODEL: stub.url,
    MODEL_DIMENSIONS: String(size),
    DATABASE_URL: `${service.databaseUrl}?options=${encodeURIComponent(bareOptions)}`
  })
  const out = []
  let chunkCount = 0
  await withServer(service.databaseUrl, async (run) => {
    await run(view(many.agentId))
    let rate = 0
    for (const wantedSize of sizes) {
      const maxChunks =
        rate === 0 ? wantedSize : chunkCount + Math.floor(maxGrowthSeconds / rate / step) * step
      const chunks = Math.min(wantedSize, maxChunks)
      if (chunks <= chunkCount) break
      const started = performance.now()
      const indexSeconds = await grow(run, many, chunks - chunkCount, {
        first: 100_000_000 + chunkCount,
        profile: `bench/${size}`,
        size
      })
      const seconds = (performance.now() - started) / 1_000
      progress(
        `${chunks} chunks written in ${Math.round(seconds)} s, ${Math.round(indexSeconds)} of them for the index`
      )
      rate = (indexSlowdown * seconds) / (chunks - chunkCount)
      chunkCount = chunks
      const measured = await measureSize(
        service,
        chunks,
        { bare: peerTarget(bare, lineQuestion, chunks), steady: steadyOf(peers.bare, passages) },
        world
      )
      const recall = await recallOf(run, many, chunks, quick ? 5 : 40)
      out.push({ ...measured, recall })
      progress(JSON.stringify(out.at(-1)))
    }
  })
  await service.stop()
  await bare.stop()
  return growth(out)
}

const growEmbedded = async (world, sizes) => {
  const { model, passages, progress, services } = world
  const { peers, embedded } = await services()
  const stub = await model()
  let service = await embeddedSpoke(stub, [small, 0], { variables, size, text: line })
  const { agents } = service
  const steady = peers
    ? steadyOf(peers.bare, passages)
    : spokeTarget(embedded, embedded.key, question, passages)
  const out = []
  let chunkCount = 0
  for (const chunks of sizes) {
    await service.stop()
    const started = performance.now()
    await withEmbedded(service.variables, (run) =>
      writeChunks(run, agents[1], chunks - chunkCount, { first: 100_000_000 + chunkCount, size, text: line })
    )
    progress(`${chunks} chunks written in ${Math.round((performance.now() - started) / 1_000)} s`)
    chunkCount = chunks
    service = { ...(await startSpoke(service.variables)), agents, variables: service.variables }
    const memory = watchMemory(service.pid)
    const first = performance.now()
    await searchable({ ...service, key: agents[1].key }, lineQuestion(0, chunks))
    const firstSearchMs = Math.round(performance.now() - first)
    out.push({ ...(await measureSize(service, chunks, { steady }, world)), firstSearchMs })
    out.at(-1).memoryMiB = Math.round(memory.end())
    progress(JSON.stringify(out.at(-1)))
  }
  await service.stop()
  return growth(out)
}

export const retrieve = async (world) => {
  const { databases, largest, passages, progress, quick } = world
  const { postgres } = await databases()
  const out = { passages, sideBySide: await sideBySide({ ...world, postgres }) }
  progress("growth")
  return {
    ...out,
    growth: {
      dimensions: size,
      smallAgent: small,
      ...(postgres?.vector && {
        server: await growServer(
          world,
          quick ? [2_000, 25_000] : [5_000, 100_000, 1_000_000].filter((chunks) => chunks <= largest)
        )
      }),
      embedded: await growEmbedded(world, quick ? [2_000, 4_000] : [5_000, 100_000])
    }
  }
}
