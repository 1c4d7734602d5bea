/**
 * Start on existing data to the first 200 of `/readyz`, beside the bare peer's own start; and resident memory, idle after
 * the start and at its most under load: 64 clients' streams, then pages being read.
 */
import { question } from "../corpus.mjs"
import { load } from "../load.mjs"
import { cpuOf, median, pause, rounded, startScript, startSpoke, until, watchMemory } from "../machine.mjs"
import { call, keyHeader } from "../spoke.mjs"

/** Starts it and polls until it is ready: seconds, and processor seconds of its threads. */
const timeStart = async (start, route) => {
  const started = performance.now()
  const service = await start()
  await until(
    "The first 200",
    60_000,
    async () => {
      try {
        return (await fetch(`${service.url}${route}`)).ok ? true : undefined
      } catch {
        return undefined
      }
    },
    5
  )
  return { service, seconds: (performance.now() - started) / 1_000, cpuSeconds: cpuOf(service.pid) }
}

const summary = (all) => ({
  seconds: rounded(median(all.map(({ seconds }) => seconds))),
  cpuSeconds: rounded(median(all.map(({ cpuSeconds }) => cpuSeconds)))
})

/** Node.js gives the memory of the start back when a process allocates little, at the latest after 100 seconds. */
const idleMs = 150_000

/** Memory after `idleMs` without requests, and its maximum under load. */
const measureMemory = async (spoke, site, { passages, progress, quick, seconds }) => {
  await pause(quick ? 500 : idleMs)
  const memory = watchMemory(spoke.pid)
  const headers = keyHeader(spoke)
  const body = (number) => JSON.stringify({ message: question(number, passages) })
  const target = {
    url: `${spoke.url}/v1/chat/stream`,
    headers,
    body,
    first: '"text-delta"',
    end: '"data-done"'
  }
  const { errors } = await load(target, { clients: quick ? 8 : 64, seconds: seconds * 3 })
  const { data } = await call(`${spoke.url}/v1/sources`, {
    method: "POST",
    headers,
    body: {
      type: "SITEMAP",
      name: "Memory",
      config: { sitemapUrl: `${site.url}/sitemap-1000000-${quick ? 5 : 120}.xml` }
    }
  })
  await until("Reading", 300_000, async () => {
    const { data: source } = await call(`${spoke.url}/v1/sources/${data.source.id}`, { headers })
    return source.status === "READY" ? true : undefined
  })
  const out = { idleMiB: Math.round(memory.before), peakMiB: Math.round(memory.end()), errors }
  progress(JSON.stringify(out))
  return out
}

export const start = async (world) => {
  const { progress, quick, rounds } = world
  const { embedded, model, peers, postgres, server } = await world.services()
  const bareVariables = {
    MODEL: model.url,
    ...(peers && { DATABASE_URL: peers.databaseUrl })
  }
  const site = await startScript("site.mjs")
  const spokes = { ...(server && { server }), embedded }
  for (const spoke of Object.values(spokes)) await spoke.stop()
  const out = { bare: [], server: [], embedded: [] }
  const starts = {
    bare: [() => startScript("peers/bare.mjs", [], bareVariables), "/ready"],
    ...Object.fromEntries(
      Object.entries(spokes).map(([name, { variables }]) => [name, [() => startSpoke(variables), "/readyz"]])
    )
  }
  for (let round = 0; round < (quick ? 1 : rounds + 2); round++) {
    for (const [name, [begin, route]] of Object.entries(starts)) {
      const result = await timeStart(begin, route)
      await result.service.stop(name === "bare" ? "SIGKILL" : "SIGTERM")
      out[name].push(result)
      progress(`${name}: ${rounded(result.seconds)} s, ${rounded(result.cpuSeconds)} CPU seconds`)
    }
  }
  const result = { database: postgres?.version, bare: summary(out.bare) }
  for (const [name, spoke] of Object.entries(spokes)) {
    const restarted = { ...spoke, ...(await startSpoke(spoke.variables)) }
    result[name] = { ...summary(out[name]), memory: await measureMemory(restarted, site, world) }
    await restarted.stop()
  }
  await site.stop()
  return result
}
