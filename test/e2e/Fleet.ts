/** Four real processes behind a load balancer, with one PostgreSQL and one Redis: two API servers and two workers. */
import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { startRedis } from "../servers/RedisServer.ts"
import { serverUrl } from "../TestDatabase.ts"
import { type RoundRobin, startRoundRobin } from "./RoundRobin.ts"
import { type Spoke, start } from "./Spoke.ts"

/** A new database on the worker's PostgreSQL server: empty, or a copy of `template`, which must have no connections. */
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

/** Variables of all processes of a fleet. */
export const fleetVariables = {
  SPOKE_DATABASE_POOL: "6",
  SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
  SPOKE_OPERATOR_TOKEN: "operator"
}

export interface Fleet {
  /** The two API servers, then the two workers. */
  readonly processes: Array<Spoke>
  readonly balancer: RoundRobin
  readonly databaseUrl: string
  readonly redis: Awaited<ReturnType<typeof startRedis>>
  /** Starts a process with the role at `index`. The caller puts it into {@link processes}. */
  readonly open: (index: number) => Promise<Spoke>
  readonly close: () => Promise<void>
}

/** Uses the Redis `given`, which outlives the fleet, or starts its own. */
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
    // As behind any load balancer, the servers give its address as their own.
    APP_URL: balancer.url,
    ...variables,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url
  }
  const open = (index: number) => start(folder, shared, ["--role", roles[index] ?? "api"])
  processes.push(...(await Promise.all(roles.map((_, index) => open(index)))))
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
