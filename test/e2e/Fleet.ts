/** Four real processes, two for requests and two for work, on one PostgreSQL and one Redis, behind a balancer. */
import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { startRedis } from "../RedisServer.ts"
import { serverUrl } from "../TestDatabase.ts"
import { type RoundRobin, startRoundRobin } from "./RoundRobin.ts"
import { type Spoke, start } from "./Spoke.ts"

/** An empty database of its own on the worker's PostgreSQL server. */
export const freshDatabase = async (): Promise<string> => {
  const server = new URL(Redacted.value(await Effect.runPromise(serverUrl)))
  const name = `fleet_${randomUUID().replaceAll("-", "")}`
  const admin = new Pg.Client({ connectionString: server.href })
  await admin.connect()
  await admin.query(`create database ${name}`)
  await admin.end()
  server.pathname = `/${name}`
  return server.href
}

const roles = ["api", "api", "worker", "worker"] as const

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

export const startFleet = async (
  folder: string,
  variables: Readonly<Record<string, string>> = {}
): Promise<Fleet> => {
  const redis = await startRedis()
  const databaseUrl = variables["DATABASE_URL"] ?? (await freshDatabase())
  const shared = {
    SPOKE_DATABASE_POOL: "6",
    SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
    SPOKE_OPERATOR_TOKEN: "operator",
    ...variables,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url
  }
  const open = (place: number) => start(folder, shared, ["--role", roles[place] ?? "api"])
  const processes = await Promise.all(roles.map((_, place) => open(place)))
  const balancer = await startRoundRobin(() => processes.slice(0, 2).map(({ url }) => url))
  return {
    processes,
    balancer,
    databaseUrl,
    redis,
    open,
    close: async () => {
      balancer.close()
      await Promise.all(processes.map((process) => process.kill()))
      await redis.stop()
    }
  }
}
