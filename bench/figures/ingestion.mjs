/**
 * Documents a second from an accepted source to `READY`, and to the last vector, beside the hand-written peer that reads the
 * same pages four at a time. Embeddings cost nothing here, so that what is left is the service's own; then a few pages
 * with the model that ships with Spoke, for how much of the processor's time is left beside that.
 */
import { cpuOf, median, rounded, startScript, until } from "../machine.mjs"
import { call, embeddedSpoke, keyHeader } from "../spoke.mjs"

/** Reads `count` pages: seconds to READY and to the last vector, and what the processor did. */
const ingestWithSpoke = async (spoke, origin, first, count, database) => {
  const ask = (method, route, body) =>
    call(`${spoke.url}${route}`, { method, headers: keyHeader(spoke), body }).then(({ data }) => data)
  const before = [cpuOf(spoke.pid), database ? cpuOf(database) : 0]
  const started = performance.now()
  const elapsed = () => ({
    seconds: (performance.now() - started) / 1_000,
    cpu: cpuOf(spoke.pid) - before[0],
    databaseCpu: database ? cpuOf(database) - before[1] : 0
  })
  const { source } = await ask("POST", "/v1/sources", {
    type: "SITEMAP",
    name: `Pages ${first}`,
    config: { sitemapUrl: `${origin}/sitemap-${first}-${count}.xml` }
  })
  const ready = await until("Reading", 300_000, async () => {
    const { error, status } = await ask("GET", `/v1/sources/${source.id}`)
    if (status === "FAILED") throw new Error(error)
    return status === "READY" ? elapsed() : undefined
  })
  const chunks = await until("Embedding", 300_000, async () => {
    const state = await ask("GET", `/v1/sources/${source.id}/embedding`)
    return state.chunks > 0 && state.chunks === state.embedded ? state.chunks : undefined
  })
  return { ready, whole: elapsed(), chunks }
}

const ingestByHand = async ({ pid, url }, origin, first, count, database) => {
  const before = [cpuOf(pid), cpuOf(database)]
  const started = performance.now()
  const pages = Array.from({ length: count }, (_, place) => `${origin}/p/${first + place}`)
  await call(`${url}/ingest`, { method: "POST", body: { pages } })
  return {
    seconds: (performance.now() - started) / 1_000,
    cpu: cpuOf(pid) - before[0],
    databaseCpu: cpuOf(database) - before[1]
  }
}

const perDocument = (results, field, count) =>
  rounded((median(results.map((result) => result[field])) * 1_000) / count)

const summary = (results, count) => ({
  documentsPerSecond: rounded(count / median(results.map(({ seconds }) => seconds))),
  cpuMsPerDocument: perDocument(results, "cpu", count),
  databaseCpuMsPerDocument: perDocument(results, "databaseCpu", count)
})

/** With the embedding model that ships with Spoke. */
const measureOffline = async (origin, first, count, ownCpuPerChunk) => {
  const spoke = await embeddedSpoke(undefined, [0])
  const { chunks, whole } = await ingestWithSpoke(spoke, origin, first, count)
  await spoke.stop()
  const perChunk = (whole.cpu * 1_000) / chunks
  return {
    documents: count,
    cpuMsPerChunk: rounded(perChunk),
    shareBesideTheModel: rounded(Math.min(1, ownCpuPerChunk / perChunk), 2)
  }
}

export const ingestion = async (world) => {
  const { progress, quick, rounds } = world
  const { embedded, model, peers, postgres, server } = await world.services()
  const count = quick ? 10 : 120
  const site = await startScript("site.mjs")
  await call(`${model.url}/pace`, {
    method: "POST",
    body: { first: 0, gap: 0, tokens: 50, alike: true }
  })
  const seen = { handwritten: [], server: [], embedded: [] }
  let first = 1
  // The first round is a warm-up.
  for (let round = quick ? 0 : -1; round < rounds; round++) {
    for (const [name, service] of Object.entries({ handwritten: peers?.handwritten, server, embedded })) {
      if (service === undefined) continue
      const result =
        name === "handwritten"
          ? await ingestByHand(service, site.url, first, count, postgres.pid)
          : await ingestWithSpoke(
              service,
              site.url,
              first,
              count,
              name === "server" ? postgres.pid : undefined
            )
      first += count
      if (round < 0) continue
      seen[name].push(result)
      progress(`${name}: ${rounded(count / (result.ready ?? result).seconds)} documents/s`)
    }
  }
  await call(`${model.url}/pace`, { method: "POST", body: { first: 0, gap: 0, tokens: 50 } })
  const ratio = (name, part) =>
    rounded(median(seen[name].map((result, round) => seen.handwritten[round].seconds / result[part].seconds)))
  const engineFigures = (name) => ({
    toReady: summary(
      seen[name].map(({ ready }) => ready),
      count
    ),
    toLastVector: summary(
      seen[name].map(({ whole }) => whole),
      count
    ),
    ...(seen.handwritten.length > 0 && {
      ratios: { toReady: ratio(name, "ready"), toLastVector: ratio(name, "whole") }
    })
  })
  const { chunks, whole } = seen.embedded[0]
  progress("with the built-in embedding model")
  const out = {
    documents: count,
    chunks,
    ...(seen.handwritten.length > 0 && { handwritten: summary(seen.handwritten, count) }),
    ...(server && { server: engineFigures("server") }),
    embedded: engineFigures("embedded"),
    offline: await measureOffline(site.url, first, quick ? 4 : 24, (whole.cpu * 1_000) / chunks)
  }
  await site.stop()
  return out
}
