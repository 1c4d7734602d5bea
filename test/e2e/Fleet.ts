/** Four real processes, two for requests and two for work, on one PostgreSQL and one Redis, behind a balancer. */
import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { startRedis } from "../servers/RedisServer.ts"
import { serverUrl } from "../TestDatabase.ts"
import { type RoundRobin, startRoundRobin } from "./RoundRobin.ts"
import { type Spoke, start } from "./Spoke.ts"

/** A database of its own on the worker's PostgreSQL server: empty, or a copy of `template`, which nobody may be using. */
export const freshDatabase = async (
  name = `fleet_${randomUUID().replaceAll("-", "")}`,
  template = "template1"
): Promise<string> => {
  const server = new URL(Redacted.value(await Effect.runPromise(serverUrl)))
  const admin = new Pg.Client({ connectionString: server.href })
  await admin.connect()
  await admin.query(`create database ${name} template ${template}`)
  await admin.end()
  server.pathname = `/${name}`
  return server.href
}

const roles = ["api", "api", "worker", "worker"] as const

/** What all processes of a fleet are told. */
export const fleetVariables = {
  SPOKE_DATABASE_POOL: "6",
  SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
  SPOKE_OPERATOR_TOKEN: "operator"
}

export interface Fleet {
  /** The two that answer, then the two that work. */
  readonly processes: Array<Spoke>
  readonly balancer: RoundRobin
  readonly databaseUrl: string
  readonly redis: Awaited<ReturnType<typeof startRedis>>
  /** A process of this place's role; the caller puts it into {@link processes}. */
  readonly open: (place: number) => Promise<Spoke>
  readonly close: () => Promise<void>
}

/** On the Redis `given`, which then outlives the fleet, or on one of its own. */
export const startFleet = async (
  folder: string,
  variables: Readonly<Record<string, string>> = {},
  given?: Awaited<ReturnType<typeof startRedis>>
): Promise<Fleet> => {
  const redis = given ?? (await startRedis())
  const processes: Array<Spoke> = []
  const balancer = await startRoundRobin(() => processes.slice(0, 2).map(({ url }) => url))
  const databaseUrl = variables["DATABASE_URL"] ?? (await freshDatabase())
  const shared = {
    ...fleetVariables,
    // As behind any balancer: what they say of themselves is where it is.
    APP_URL: balancer.url,
    ...variables,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url
  }
  const open = (place: number) => start(folder, shared, ["--role", roles[place] ?? "api"])
  processes.push(...(await Promise.all(roles.map((_, place) => open(place)))))
  return {
    processes,
    balancer,
    databaseUrl,
    redis,
    open,
    close: async () => {
      balancer.close()
      await Promise.all(processes.map((process) => process.kill()))
      if (given === undefined) await redis.stop()
    }
  }
}
