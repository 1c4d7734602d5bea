/**
 * What `start(folder)` of a suite starts with `SPOKE_TEST_ENGINES=production`: two servers in turn, two workers, one
 * PostgreSQL and one Redis. Database and Redis belong to the folder, so a second start finds the same data.
 */
import { zipSync } from "fflate"
import * as Redacted from "effect/Redacted"
import { Redis } from "ioredis"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Pg from "pg"
import { accountsUrl } from "../servers/Accounts.ts"
import { startRedis } from "../servers/RedisServer.ts"
import { layerEmbedded, layerPostgres } from "../../src/store/Database.ts"
import { oncePerWorker } from "../TestDatabase.ts"
import { fleetVariables, freshDatabase, startFleet } from "./Fleet.ts"
import { owner, pages } from "./FirstStart.ts"
import * as Prepared from "./Prepared.ts"
import {
  waitForJob,
  removeFolder,
  requester,
  root,
  type Spoke,
  startFresh,
  temporaryFolder
} from "./Spoke.ts"

/** The database and the Redis of a folder. */
interface Services {
  readonly databaseUrl: string
  readonly redis: Awaited<ReturnType<typeof startRedis>>
}

/** The services of each folder. They run until the process of the tests ends. */
const folders = new Map<string, Services>()

const servicesOf = async (dataDir: string, databaseUrl: string | undefined): Promise<Services> => {
  const known = folders.get(dataDir)
  if (known !== undefined) return known
  const made = { databaseUrl: databaseUrl ?? (await freshDatabase()), redis: await startRedis() }
  folders.set(dataDir, made)
  return made
}

/** The database of a stopped server, wherever it is. */
export const storeOf = (dataDir: string) => {
  const services = folders.get(dataDir)
  return services === undefined
    ? layerEmbedded({ dataDir })
    : layerPostgres({ url: Redacted.make(services.databaseUrl), maxConnections: 1 })
}

/** The variables with which a command uses the database and Redis of a folder; none for an embedded store. */
export const variablesOf = (dataDir: string): Readonly<Record<string, string>> => {
  const services = folders.get(dataDir)
  return services === undefined ? {} : { DATABASE_URL: services.databaseUrl, REDIS_URL: services.redis.url }
}

/** Variables for another, empty database; none for an embedded store. */
export const otherVariables = async (dataDir: string): Promise<Readonly<Record<string, string>>> =>
  folders.has(dataDir) ? { DATABASE_URL: await freshDatabase() } : {}

/** The text of every row of every table, and the folder of the database files, to which everything has been written. */
const rowsOf = async (url: string) => {
  const client = new Pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query("set bytea_output = 'escape'")
    const { rows: tables } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`
    )
    const texts: Array<string> = []
    for (const { name } of tables) {
      const { rows } = await client.query<{ row: string }>(`select t::text as row from ${name} t`)
      texts.push(...rows.map(({ row }) => row))
    }
    await client.query("checkpoint")
    const { rows } = await client.query<{ setting: string }>(
      "select current_setting('data_directory') as setting"
    )
    return { text: texts.join("\n"), folder: rows[0]?.setting ?? "" }
  } finally {
    await client.end()
  }
}

/** All keys and values in Redis. */
const valuesOf = async (client: Redis) => {
  // Compressed values could not be searched.
  await client.config("SET", "rdbcompression", "no")
  const texts: Array<string> = []
  for (const key of await client.keys("*")) {
    const value = await client.dumpBuffer(key)
    texts.push(key, value?.toString("latin1") ?? "")
  }
  return texts.join("\n")
}

/**
 * Records every command that the folder's Redis gets from now on. `stop` returns them, the contents of Redis, all rows of
 * the database and the folder of its files. Null for an embedded store.
 */
export const recordCommands = async (dataDir: string) => {
  const services = folders.get(dataDir)
  if (services === undefined) return null
  const client = new Redis(services.redis.url)
  const monitor = await client.monitor()
  const commands: Array<string> = []
  monitor.on("monitor", (_time: string, given: ReadonlyArray<string>) => commands.push(given.join(" ")))
  return {
    stop: async () => {
      monitor.disconnect()
      const values = await valuesOf(client)
      client.disconnect()
      const { folder, text } = await rowsOf(services.databaseUrl)
      return { commands: commands.join("\n"), values, rows: text, folder }
    }
  }
}

const documentation = (names: ReadonlyArray<string>): Blob => {
  const docs = Path.join(root, "docs")
  const entries = names.map((name) => [name, new Uint8Array(Fs.readFileSync(Path.join(docs, name)))] as const)
  return new Blob([new Uint8Array(zipSync(Object.fromEntries(entries)))])
}

const allPages = Fs.readdirSync(Path.join(root, "docs")).filter((name) => name.endsWith(".md"))

/** Makes what the first start of an embedded server makes by itself: an agent, a key, and a source with `pages`. */
const firstStart = async (
  spoke: Spoke,
  variables: Readonly<Record<string, string>>,
  pages: ReadonlyArray<string>
): Promise<string> => {
  const { SPOKE_ADMIN_EMAIL: email, SPOKE_ADMIN_PASSWORD: password } = { ...owner, ...variables }
  const good = async (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: unknown
  ) => {
    const answer = await spoke.request(method, path, { key: null, headers, body })
    if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
    return answer
  }
  const csrf = { "x-spoke-csrf": "1" }
  const login = await good("POST", "/api/auth/login", csrf, { email, password })
  const session = { ...csrf, cookie: login.headers.get("set-cookie")?.split(";")[0] ?? "" }
  const agent = (await good("POST", "/api/agents", session, { name: "Spoke guide" })).body.data.agent
  const key = { name: "First key", permissions: ["*"] }
  const { secret } = (await good("POST", `/api/agents/${agent.id}/keys`, session, key)).body.data
  const form = new FormData()
  form.set("agentId", agent.id)
  form.set("name", "Spoke documentation")
  form.set("file", documentation(pages), "docs.zip")
  const sent = await fetch(`${spoke.url}/api/sources/bulk-upload`, {
    method: "POST",
    headers: session,
    body: form
  })
  if (sent.status !== 201) throw new Error(`${sent.status} ${await sent.text()}`)
  const { data } = JSON.parse(await sent.text())
  await waitForJob({ ...spoke, request: requester(spoke.url, secret) }, data.ingestionJob.id)
  return secret
}

const template = "prepared"

/** A template database that a first start has filled, and its key. There is one for each worker. */
const prepared = () =>
  oncePerWorker("prepared database", async () => {
    const folder = temporaryFolder()
    const redis = await startRedis()
    const shared = { ...fleetVariables, ...owner, REDIS_URL: redis.url }
    const DATABASE_URL = await freshDatabase(template)
    const spoke = await startFresh(folder, { ...shared, DATABASE_URL }, ["--role", "all"])
    const apiKey = await firstStart(spoke, {}, pages)
    await Prepared.waitUntilEmbedded(spoke, apiKey)
    await spoke.stop()
    await redis.stop()
    removeFolder(folder)
    return { apiKey }
  })

/**
 * Behaves as `start` of a single server: the address is that of the balancer, and `kill` and `stop` end all four processes.
 * `isWhole`: the first start reads the whole documentation.
 */
export const startProduction = async (
  dataDir: string,
  variables: Readonly<Record<string, string>>,
  isWhole = false
): Promise<Spoke> => {
  const known = folders.has(dataDir)
  const isNew = !known && variables["DATABASE_URL"] === undefined
  const copied = isNew && !isWhole && Prepared.usesDefaults(variables) ? await prepared() : undefined
  const databaseUrl =
    copied === undefined ? variables["DATABASE_URL"] : await freshDatabase(undefined, template)
  const services = await servicesOf(dataDir, databaseUrl)
  const fleet = await startFleet(
    dataDir,
    {
      GRAPH_API_URL: await accountsUrl(),
      ...(variables["DATABASE_URL"] === undefined ? owner : {}),
      ...variables,
      DATABASE_URL: services.databaseUrl
    },
    services.redis
  )
  const { url } = fleet.balancer
  const [first] = fleet.processes
  if (first === undefined) throw new Error("The fleet is empty.")
  const credentials = Path.join(dataDir, "credentials.json")
  const anonymous = { ...first, url, request: requester(url, "") }
  // An existing database already has its tenant.
  if (isNew) {
    const apiKey = copied?.apiKey ?? (await firstStart(anonymous, variables, allPages))
    Fs.writeFileSync(credentials, JSON.stringify({ url, apiKey }))
    const secrets = { secret: "unused", operatorToken: anonymous.operatorToken }
    Fs.writeFileSync(Path.join(dataDir, "secrets.json"), JSON.stringify(secrets))
  }
  const apiKey: string = Fs.existsSync(credentials)
    ? JSON.parse(Fs.readFileSync(credentials, "utf8")).apiKey
    : ""
  const answering = fleet.processes.slice(0, 2)
  let ended = false
  /** Fails if one of the two servers got no request, because then the suite has tested one server only. */
  const end = async (how: () => Promise<ReadonlyArray<unknown>>) => {
    if (ended) return []
    ended = true
    const shares = answering.map((process) => fleet.balancer.given.get(process.url) ?? 0)
    const results = await how()
    await fleet.close()
    if (shares.some((share) => share === 0) && shares.some((share) => share > 1))
      throw new Error(`One process got no request: ${shares.join()}`)
    return results
  }
  return {
    ...anonymous,
    each: answering.map((process) => process.url),
    apiKey,
    request: requester(url, apiKey),
    output: () => fleet.processes.map((process) => process.output()).join("\n"),
    stop: async () => {
      const codes = await end(() => Promise.all(fleet.processes.map((process) => process.stop())))
      return codes.every((code) => code === 0) ? 0 : 1
    },
    kill: async () => {
      await end(() => Promise.all(fleet.processes.map((process) => process.kill())))
    }
  }
}
