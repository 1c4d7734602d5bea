/** The servers of one run, what they talk to, and the faults that they are given. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { Redis } from "ioredis"
import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { pathToFileURL } from "node:url"
import { type Fate, type GraphStub, startGraph } from "../servers/GraphStub.ts"
import * as ModelStub from "../servers/ModelStub.ts"
import { binaries } from "../servers/PostgresServer.ts"
import { binary, startRedis } from "../servers/RedisServer.ts"
import { removeFolder, requester, type Spoke, start, temporaryFolder } from "../e2e/Spoke.ts"
import { makeTeam, type Team } from "../e2e/Team.ts"
import { hostileFaults } from "./Hostile.ts"
import { type Disk, noDisk, press, smallDisk } from "./Disk.ts"
import type { Random } from "./Random.ts"
import { type Postgres, startPostgres } from "./Servers.ts"

export const appSecret = "the app secret of the faults"
export const billingSecret = "whsec_of_the_faults"
export const account = "pn_faults"

export type Topology = "embedded" | "fleet"

/** Milliseconds in which a process has to be ready after a fault; its supervisor restarts it then. */
const readyTimeout = 45_000

/** The fault of a database that can write no more, where disks can be filled. */
export const fullDatabase = "a full disk of the database"

/** Why there is no fleet on this machine, if there is none. */
export const noFleet =
  binaries === undefined ? "no PostgreSQL was found" : binary === undefined ? "no Redis was found" : null

export interface World {
  readonly topology: Topology
  readonly folder: string
  readonly dataDir: string
  readonly site: string
  readonly graph: GraphStub
  readonly team: Team
  readonly agentKey: string
  readonly operatorToken: string
  readonly postgres: Postgres | null
  /** Where a request goes: any process that answers requests. */
  readonly url: () => string
  readonly faults: ReadonlyArray<readonly [name: string, inflict: () => Promise<void>]>
  /** A sentence for each request that was not served because of a hostile caller. */
  readonly refused: ReadonlyArray<string>
  /** Everything runs again, and nothing fails any more. */
  readonly heal: () => Promise<void>
  /** Ends the processes; the database stays to be read. */
  readonly stopProcesses: () => Promise<string>
  readonly close: () => Promise<void>
}

/** Plans that differ in nothing that a client would run into. */
export const plans = ["small", "large"] as const

const planTable = JSON.stringify(
  Object.fromEntries(
    plans.map((plan, place) => [
      plan,
      {
        publicApi: true,
        turns: 500_000 + place,
        ingestionJobs: 500_000,
        sources: 500_000,
        overageEnabled: false
      }
    ])
  )
)

const startSite = async () => {
  const server = Http.createServer((request, response) => {
    response.setHeader("content-type", "text/plain; charset=utf-8")
    response.end(`The lighthouse ${(request.url ?? "").slice(1)} was built of granite.`)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const answer = { text: "One two three four five six seven eight.", gap: 5 }

/** Ways of the model to fail, each as often as the others. */
const failing: ReadonlyArray<ModelStub.StubAnswer> = [
  { status: 500 },
  { status: 429, headers: { "retry-after": "1" } },
  { silent: "reset" },
  { ...answer, breaks: "cut" },
  { ...answer, breaks: "reset" },
  { ...answer, breaks: "error" },
  { ...answer, breaks: "garbage" },
  { ...answer, breaks: "shape" },
  { ...answer, gap: 150 }
]

const preload = `--import=${pathToFileURL(Path.join(import.meta.dirname, "skew.mjs")).href}`

/** What was opened is closed again where the rest cannot be. */
export const openWorld = async (topology: Topology, random: Random): Promise<World> => {
  const opened: Array<() => unknown> = []
  /** The last one first; each of them, whatever becomes of the others. */
  const close = async () => {
    for (const end of opened.splice(0).reverse()) {
      try {
        await end()
      } catch {
        // There is nothing more to end.
      }
    }
  }
  try {
    return await populate(topology, random, opened, close)
  } catch (error) {
    await close()
    throw error
  }
}

const populate = async (
  topology: Topology,
  random: Random,
  opened: Array<() => unknown>,
  close: () => Promise<void>
): Promise<World> => {
  const folder = temporaryFolder()
  opened.push(() => removeFolder(folder))
  const dataDir = Path.join(folder, "data")
  Fs.mkdirSync(dataDir)
  const disk = (at: string, size: string): Disk | null => {
    const mounted = noDisk === null ? smallDisk(at, size) : null
    opened.push(() => mounted?.close())
    return mounted
  }
  const artifacts = disk(Path.join(dataDir, "artifacts"), "1m")
  const database =
    topology === "fleet"
      ? disk(Path.join(folder, "postgres"), "256m")
      : disk(Path.join(dataDir, "database"), "256m")
  const scope = Effect.runSync(Scope.make())
  opened.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  stub.otherwise = answer
  const site = await startSite()
  opened.push(() => {
    site.server.close()
    site.server.closeAllConnections()
  })
  let troubled = true
  const fates = new Map<string, Fate>()
  const graph = await startGraph((message, call) => {
    if (!troubled) return "taken"
    const key = `${message} ${call}`
    const fate =
      fates.get(key) ??
      random.weighed<Fate>([
        [8, "taken"],
        [1, "busy"],
        [1, "lost"],
        [1, "cut"]
      ])
    fates.set(key, fate)
    return fate
  })
  opened.push(() => graph.close())
  const postgres =
    topology === "fleet" ? await startPostgres(folder, ["min_wal_size=32MB", "max_wal_size=64MB"]) : null
  opened.push(() => postgres?.stop("SIGQUIT"))
  let redis = topology === "fleet" ? await startRedis() : null
  opened.push(() => redis?.stop())
  const redisPort = redis?.port
  const variables = {
    SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
    SPOKE_OPERATOR_TOKEN: "operator",
    OPENAI_BASE_URL: stub.url,
    OPENAI_API_KEY: "sk-stub",
    SPOKE_EMBEDDING_MODEL: "offline",
    SPOKE_FETCH_ALLOW: "127.0.0.1",
    SPOKE_TURN_TIMEOUT: "10 seconds",
    CHANNEL_APP_SECRET: appSecret,
    BILLING_WEBHOOK_SECRET: billingSecret,
    SPOKE_PLANS: planTable,
    GRAPH_API_URL: graph.url,
    ...(postgres === null ? {} : { DATABASE_URL: postgres.url, SPOKE_DATABASE_POOL: "6" }),
    ...(redis === null ? {} : { REDIS_URL: redis.url })
  }
  const roles = topology === "embedded" ? [null] : ["api", "api", "worker"]
  let output = ""
  const processes: Array<Spoke | undefined> = []
  opened.push(() => Promise.all(processes.map((one) => one?.kill())))
  const open = (place: number, skew = 0): Promise<Spoke> => {
    const role = roles[place] ?? null
    const wrong = skew === 0 ? {} : { NODE_OPTIONS: preload, FAULT_SKEW: String(skew) }
    return start(dataDir, { ...variables, ...wrong }, role === null ? [] : ["--role", role])
  }
  const first = await open(0)
  processes.push(first)
  // Each is known when it runs, and none is still on its way when another one has failed.
  const others = await Promise.allSettled(
    roles.slice(1).map(async (_, place) => {
      processes[place + 1] = await open(place + 1)
    })
  )
  for (const other of others) if (other.status === "rejected") throw other.reason
  const asked = () => processes.slice(0, topology === "embedded" ? 1 : 2).flatMap((one) => one?.url ?? [])
  let last = first.url
  const url = () => {
    const urls = asked()
    if (urls.length > 0) last = random.pick(urls)
    return last
  }
  // A process comes back at another address, and a session is good at all of them.
  const request: Spoke["request"] = (...given) => requester(url(), "")(...given)
  const team = await makeTeam({ ...first, operatorToken: "operator", request })
  const made = await team.owner("POST", `/api/agents/${team.agentId}/channels`, {
    channel: "whatsapp",
    externalId: account,
    accessToken: "EAAB-faults"
  })
  if (made.status !== 201) throw new Error(`The channel: ${made.status}`)
  const { secret: agentKey } = await team.key({ permissions: ["*"] })
  const hostile = await makeTeam({ ...first, operatorToken: "operator", request })
  const { secret: hostileKey } = await hostile.key({ permissions: ["*"] })
  const visitor = await request("POST", "/v1/chat", { key: hostileKey, body: { message: "Hello." } })
  if (visitor.status !== 200) throw new Error(`The visitor: ${visitor.status}`)
  const refused: Array<string> = []

  const wrong = new Set<number>()
  const replace = async (place: number, skew = 0) => {
    if (skew === 0) wrong.delete(place)
    else wrong.add(place)
    const old = processes[place]
    processes[place] = undefined
    if (old !== undefined) {
      await old.kill()
      output += old.output()
    }
    for (let attempts = 30; ; attempts--) {
      try {
        processes[place] = await open(place, skew)
        return
      } catch (error) {
        // It does not start while what it needs is away.
        if (attempts === 0) throw error
        await delay(1_000)
      }
    }
  }
  const somebody = () => random.below(processes.length)
  let postgresIsUp = true
  /** Restarts a process that has ended, as a supervisor does. */
  const revivePostgres = async () => {
    if (postgresIsUp && postgres?.runs() !== false) return
    await postgres?.start()
    postgresIsUp = true
  }
  /** What has ended by itself is started again, and everybody is given time to be ready. */
  const revive = async () => {
    await revivePostgres()
    for (const [place, one] of processes.entries()) {
      if (one === undefined) continue
      const ended = () => one.process.exitCode !== null
      const ready = () =>
        fetch(`${one.url}/readyz`, { signal: AbortSignal.timeout(2_000) }).then(
          ({ ok }) => ok,
          () => false
        )
      const end = Date.now() + readyTimeout
      let isReady = one.url === ""
      while (!isReady && !ended() && Date.now() < end) {
        isReady = await ready()
        if (isReady) break
        await delay(200)
        await revivePostgres()
      }
      if (!isReady && !ended()) process.stdout.write(`process ${place} was not ready in time: restarted\n`)
      if (!isReady && processes[place] === one) await replace(place)
    }
  }
  const withRedisClient = async (use: (client: Redis) => Promise<unknown>) => {
    const client = new Redis({
      port: redisPort ?? 0,
      host: "127.0.0.1",
      lazyConnect: true,
      retryStrategy: () => null
    })
    client.on("error", () => undefined)
    try {
      await client.connect()
      await use(client)
    } finally {
      client.disconnect()
    }
  }
  const faults: Array<readonly [string, () => Promise<void>]> = [
    ["kill -9", () => replace(somebody())],
    ["kill -9 again", () => replace(somebody())],
    ["restart with a wrong clock", () => replace(somebody(), random.pick([-1, 1]) * 3_600_000)],
    [
      "a failing model",
      async () => {
        stub.otherwise = random.pick(failing)
        await delay(500 + random.below(1_500))
        stub.otherwise = answer
      }
    ]
  ]
  const callers = {
    url,
    hostileKey,
    hostileToken: visitor.body.data.realtimeToken,
    otherKey: agentKey,
    appSecret
  }
  faults.push(...hostileFaults(callers, random, revive, (sentence) => refused.push(sentence)))
  if (artifacts !== null)
    faults.push([
      "a full disk",
      async () => {
        artifacts.fill()
        await delay(1_000 + random.below(1_000))
        artifacts.free()
      }
    ])
  if (database !== null)
    faults.push([
      fullDatabase,
      async () => {
        database.fill()
        // Some come back while there is no room yet.
        const restarted = random.next() < 0.3 ? replace(somebody()) : null
        // It may wait for room, too.
        const switching = random.next() < 0.5 ? postgres?.run("select pg_switch_wal()") : undefined
        await Promise.race([Promise.resolve(switching).catch(() => undefined), delay(5_000)])
        await press(url, agentKey, 1_000 + random.below(3_000))
        database.free()
        await revivePostgres()
        await restarted
        await revive()
      }
    ])
  if (postgres !== null) {
    const restart = async (how: "SIGINT" | "SIGQUIT") => {
      postgresIsUp = false
      await postgres.stop(how)
      await delay(random.below(2_500))
      await postgres.start()
      postgresIsUp = true
    }
    faults.push(
      [
        "database connections dropped",
        async () => {
          await postgres.run(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'"
          )
        }
      ],
      ["PostgreSQL stopped fast", () => restart("SIGINT")],
      ["PostgreSQL stopped at once", () => restart("SIGQUIT")],
      [
        "Redis connections dropped",
        () => withRedisClient((client) => client.call("CLIENT", "KILL", "TYPE", "normal"))
      ],
      ["Redis emptied", () => withRedisClient((client) => client.flushall())],
      [
        "Redis killed",
        async () => {
          await redis?.stop()
          await delay(random.below(2_500))
          redis = await startRedis(redisPort)
        }
      ]
    )
  }
  return {
    topology,
    folder,
    dataDir,
    site: site.url,
    graph,
    team,
    agentKey,
    operatorToken: "operator",
    postgres,
    url,
    faults,
    refused,
    heal: async () => {
      troubled = false
      stub.otherwise = answer
      artifacts?.free()
      database?.free()
      await revive()
      for (const [place, one] of processes.entries()) {
        // What is signed by the hour is refused, rightly, for as long as the clock is wrong.
        if (one === undefined || one.process.exitCode !== null || wrong.has(place)) await replace(place)
      }
    },
    stopProcesses: async () => {
      for (const one of processes) {
        await one?.stop()
        output += one?.output() ?? ""
      }
      return output
    },
    close
  }
}
