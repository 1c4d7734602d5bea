/**
 * Whether the server should get requests (contract 11): ready once it listens and the database answers; draining from the
 * first signal on. A drain goes through the same steps in the same order, whoever asks for it.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { Readiness } from "../http/system/Readiness.ts"

/** Longest wait for the database's answer. */
const patience = "2 seconds"

export class Draining extends Effect.Service<Draining>()("app/Draining", {
  effect: Effect.map(Ref.make(false), (started) => ({
    begin: Ref.set(started, true),
    begun: Ref.get(started)
  }))
}) {}

/** What `/readyz` asks. */
export const readiness = Layer.effect(
  Readiness,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const draining = yield* Draining
    const answers = (query: Effect.Effect<unknown, unknown>) =>
      query.pipe(
        Effect.timeout(patience),
        Effect.as(true),
        Effect.catchAllCause(() => Effect.succeed(false))
      )
    return {
      check: Effect.gen(function* () {
        const checks = [
          { name: "accepting", ok: !(yield* draining.begun) },
          { name: "database", ok: yield* answers(sql`select 1`) },
          { name: "queue", ok: yield* answers(sql`select 1 from queue_jobs limit 1`) },
          { name: "migrations", ok: yield* answers(sql`select 1 from agent_usage limit 1`) }
        ]
        return { ready: checks.every(({ ok }) => ok), checks }
      })
    }
  })
)
