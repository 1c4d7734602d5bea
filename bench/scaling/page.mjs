/**
 * Writes the measured part of docs/scaling.md from bench/costs.json, streams.json, tenants.json, chunks.json: what units of
 * work cost, and what loads need by those figures. `node bench/scaling/page.mjs`; a test compares the page with the records.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "../machine.mjs"

const read = (name) => JSON.parse(fs.readFileSync(path.join(root, "bench", `${name}.json`), "utf8"))

/** Share of a core that a process, and of a server that the database, is to use at most: requests do not come evenly. */
const maxShare = 0.6
/** Requests to providers of one process at a time: the limit `provider-connections`. */
const maxStreams = 2_048
/** A usual turn: the length of its reply, and its speed. */
const reply = { tokens: 300, perSecond: 30 }
/** Connections of a process to the database: `SPOKE_DATABASE_POOL` and one for LISTEN. */
const connections = 11

const number = (value) => Number(value.toPrecision(2)).toLocaleString("en", { maximumFractionDigits: 2 })
const kilobytes = (bytes) => `${number(bytes / 1_000)} kB`
const tableRow = (...cells) => `| ${cells.join(" | ")} |`

/** What one of each costs, in milliseconds of a core, kB and MiB. */
export const units = ({ costs, streams, tenants }) => {
  const { conversationTurnStored, ingestion, search, turns } = costs
  const token = Math.max(0, streams.tokens.serviceCpuMsPerToken)
  const few = tenants.tenants[0]
  const many = tenants.tenants.at(-1)
  const idle = (name) =>
    Math.max(0, many.idleCpuSecondsPerMinute[name] - few.idleCpuSecondsPerMinute[name]) /
    ((many.tenants - few.tenants) / 1_000)
  return {
    turn: { service: turns.serviceCpuMs, database: turns.databaseCpuMs, bytes: turns.stored.bytes },
    conversationBytes: conversationTurnStored.bytes,
    token,
    streamBytes: streams.held.memoryKiBPerStream * 1_024,
    search: { service: search.serviceCpuMs, database: search.databaseCpuMs },
    document: {
      service: ingestion.perDocument.workerCpuMs,
      database: ingestion.perDocument.databaseCpuMs,
      chunks: ingestion.chunks / ingestion.documents
    },
    chunkBytes: ingestion.storedPerChunk.bytes,
    connectionBytes: costs.connections.kibibytes * 1_024,
    tenant: {
      bytes: tenants.kibibytesPerTenant * 1_024,
      service: idle("service"),
      database: idle("database")
    },
    processMiB: costs.idleProcessMiB
  }
}

const unitTable = (of) =>
  [
    tableRow("One …", "CPU of the service (ms)", "CPU of the database (ms)", "Memory or disk"),
    tableRow("---", "---", "---", "---"),
    tableRow(
      "turn that begins a conversation, answered as a whole",
      number(of.turn.service),
      number(of.turn.database),
      `${kilobytes(of.turn.bytes)} on disk`
    ),
    tableRow(
      "turn in a conversation of ten",
      "the same",
      "the same",
      `${kilobytes(of.conversationBytes)} on disk`
    ),
    tableRow("token of a streamed reply, in addition", number(of.token), "–", "–"),
    tableRow("open stream", "–", "–", `${kilobytes(of.streamBytes)} of memory`),
    tableRow(
      "search (`/v1/retrieve`) in 1,000 chunks",
      number(of.search.service),
      number(of.search.database),
      "–"
    ),
    tableRow(
      `document of ${number(of.document.chunks)} chunks, read, embedded and compared`,
      `${number(of.document.service)} (worker)`,
      number(of.document.database),
      "–"
    ),
    tableRow(
      "chunk with its vector of 1,536 dimensions and its indexes",
      "–",
      "–",
      `${kilobytes(of.chunkBytes)} on disk`
    ),
    tableRow("connection that rests", "–", "–", `${kilobytes(of.connectionBytes)} of memory`),
    tableRow(
      "1,000 tenants that rest, a minute, in each process that sweeps",
      number(of.tenant.service * 1_000),
      number(of.tenant.database * 1_000),
      `${kilobytes(of.tenant.bytes)} on disk each`
    ),
    tableRow(
      "API process under load, without its streams",
      "–",
      "–",
      `${number(of.processMiB)} MiB of memory`
    )
  ].join("\n")

/** What `perSecond` streamed turns need. */
export const needs = (of, perSecond) => {
  const open = (perSecond * reply.tokens) / reply.perSecond
  const service = (perSecond * (of.turn.service + reply.tokens * of.token)) / 1_000
  const database = (perSecond * of.turn.database) / 1_000
  const processes = Math.max(1, Math.ceil(service / maxShare), Math.ceil(open / maxStreams))
  return {
    perSecond,
    open,
    service,
    database,
    processes,
    databaseCores: Math.max(1, Math.ceil(database / maxShare)),
    memory: (processes * of.processMiB * 2 ** 20 + open * of.streamBytes) / 1e9,
    diskADay: (perSecond * 86_400 * of.conversationBytes) / 1e9,
    connections: processes * connections
  }
}

const loads = [1, 10, 50, 100, 500, 1_000]

const loadTable = (of) =>
  [
    tableRow(
      "Turns a second",
      "Open streams",
      "CPU of services (cores)",
      "CPU of the database (cores)",
      "API processes",
      "Cores of the database",
      "Memory of services",
      "Disk a day",
      "Connections"
    ),
    tableRow(...Array.from({ length: 9 }, () => "---")),
    ...loads.map((perSecond) => {
      const need = needs(of, perSecond)
      return tableRow(
        perSecond.toLocaleString("en"),
        number(need.open),
        number(need.service),
        number(need.database),
        need.processes.toLocaleString("en"),
        need.databaseCores,
        `${number(need.memory)} GB`,
        `${number(need.diskADay)} GB`,
        need.connections.toLocaleString("en")
      )
    })
  ].join("\n")

const streamTable = ({ held }) =>
  [
    tableRow(`${held.streams.toLocaleString("en")} streams at once`, ""),
    tableRow("---", "---"),
    tableRow("processes", held.processes),
    tableRow("open at the same time", held.openAtOnce.toLocaleString("en")),
    tableRow(
      "ended whole, their turns stored",
      `${(held.ends.whole ?? 0).toLocaleString("en")} of ${held.streams.toLocaleString("en")}`
    ),
    tableRow(
      "memory of a process before and with its streams",
      `${number(held.idleProcessMiB)} and ${number(held.processMiB)} MiB`
    ),
    tableRow(
      "first token, median and 99th percentile, while they were opened",
      `${number(held.firstTokenMs.p50)} and ${number(held.firstTokenMs.p99)} ms`
    ),
    tableRow(
      "CPU of a stream from its request to its stored turn: services, database, Redis",
      `${number(held.serviceCpuMs)}, ${number(held.databaseCpuMs)} and ${number(held.redisCpuMs)} ms`
    ),
    tableRow(
      "CPU of all services while all are open, at " + number(held.tokensPerSecondHeld) + " tokens a second",
      `${number(held.cpuSecondsPerSecondHeld)} cores`
    ),
    tableRow(
      "delay of the event loop with all open, 99th percentile",
      `${number(held.eventLoopDelayP99Seconds * 1_000)} ms`
    )
  ].join("\n")

const tenantTable = ({ tenants }) =>
  [
    tableRow("Tenants", ...tenants.map(({ tenants: count }) => count.toLocaleString("en"))),
    tableRow("---", ...tenants.map(() => "---")),
    tableRow("start until ready (s)", ...tenants.map(({ startMs }) => number(startMs / 1_000))),
    tableRow("memory of a process (MiB)", ...tenants.map(({ processMiB }) => number(processMiB))),
    tableRow("`/metrics` (kB)", ...tenants.map(({ metricsKiB }) => number(metricsKiB))),
    tableRow("turn, median (ms)", ...tenants.map(({ turnP50Ms }) => number(turnP50Ms))),
    tableRow(
      "CPU of a resting process (s a minute)",
      ...tenants.map(({ idleCpuSecondsPerMinute: { service } }) => number(service))
    ),
    tableRow(
      "CPU of its database (s a minute)",
      ...tenants.map(({ idleCpuSecondsPerMinute: { database } }) => number(database))
    ),
    tableRow("database (MB)", ...tenants.map(({ databaseMiB }) => number(databaseMiB * 1.048576)))
  ].join("\n")

const chunkTable = ({ rows }) =>
  [
    tableRow("Chunks of other agents", ...rows.map(({ chunks }) => chunks.toLocaleString("en"))),
    tableRow("---", ...rows.map(() => "---")),
    tableRow("search of 1,000 chunks, median (ms)", ...rows.map(({ searchMs }) => number(searchMs))),
    tableRow("ratio to the search in bare SQL", ...rows.map(({ overBare }) => overBare)),
    tableRow("this ratio to that of the first size", ...rows.map(({ againstFirst }) => againstFirst))
  ].join("\n")

/** The measured parts of the page, by name. */
export const parts = (
  records = {
    chunks: read("chunks"),
    costs: read("costs"),
    streams: read("streams"),
    tenants: read("tenants")
  }
) => {
  const of = units(records)
  return {
    units: unitTable(of),
    loads: loadTable(of),
    streams: streamTable(records.streams),
    tenants: tenantTable(records.tenants),
    chunks: chunkTable(records.chunks)
  }
}

/** `page` with the measured parts. */
export const written = (page, all = parts()) =>
  Object.entries(all).reduce(
    (text, [name, table]) =>
      text.replace(
        new RegExp(`(<!-- ${name} -->)[^]*?(<!-- /${name} -->)`, "u"),
        (_, begin, end) => `${begin}\n\n${table}\n\n${end}`
      ),
    page
  )

if (path.resolve(process.argv[1] ?? "") === import.meta.filename) {
  const file = path.join(root, "docs/scaling.md")
  fs.writeFileSync(file, written(fs.readFileSync(file, "utf8")))
}
