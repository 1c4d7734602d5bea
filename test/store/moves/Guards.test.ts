/** What the database does with the rows of a tenant that moves. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { storedPurposes } from "../../../src/capabilities/SecretBox.ts"
import { forEveryTenant } from "../../../src/concurrency/TenantSession.ts"
import { TenantId } from "../../../src/domain/Ids.ts"
import * as Tables from "../../../src/store/archive/Tables.ts"
import { MoveGuards } from "../../../src/store/moves/Guards.ts"
import { HeldJobs } from "../../../src/store/moves/HeldJobs.ts"
import { MoveStore } from "../../../src/store/moves/Moves.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { tables as kinds, tenantTables } from "../TenantTables.ts"

const mine = TenantId.make("ten_mine")
const other = TenantId.make("ten_other")
const driver = "driver"

/** Tables of the installation that may name a tenant, and move with it. */
const alsoMoved = ["billing_events", "email_logs", "tenants"]

eachEngineLive("Rows of a tenant that moves", (it, engine) => {
  const fresh = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* reset
    for (const id of [mine, other]) {
      yield* sql`insert into tenants (id, name) values (${id}, ${id})`
      yield* sql`insert into agents (id, tenant_id, name) values (${`agt_${id}`}, ${id}, 'A')`
      yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${id})`
    }
    return sql
  })

  const begun = Effect.gen(function* () {
    const moves = yield* MoveStore
    const guards = yield* MoveGuards
    yield* moves.begin(mine, { driver, move: "move", role: "origin", servedAt: "https://b.example" })
    yield* guards.install(mine)
    return { moves, guards }
  })

  const within = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      yield* fresh
      return yield* Effect.ensuring(
        work,
        Effect.orDie(Effect.flatMap(MoveGuards, (guards) => guards.remove(mine)))
      )
    }).pipe(
      forEveryTenant("archive"),
      Effect.provide(MoveGuards.Default),
      Effect.provide(HeldJobs.Default),
      Effect.provide(MoveStore.Default)
    )

  const converse = (id: string, conversation: string) =>
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`
        insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
        values (${conversation}, ${id}, ${`agt_${id}`}, 'usr_1', 'api')`
    )

  const changes = Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly name: string; readonly key: ReadonlyArray<string> }>`
      select name, key from tenant_moves_changes order by seq`
  )

  it.effect("are those of every table of tenants, and of no other", () =>
    Effect.gen(function* () {
      const found = (yield* Tables.ofTenants).map(({ table }) => table)
      expect(found.toSorted()).toEqual([...tenantTables, ...alsoMoved].toSorted())
      expect(Object.keys(kinds).filter((name) => name.startsWith("tenant_moves")).length).toBe(4)
    })
  )

  it.effect(
    "say of every column with sealed values what they are sealed for, so that they are sealed anew",
    () =>
      Effect.gen(function* () {
        const named = (yield* Tables.ofTenants).flatMap(({ sealed }) =>
          sealed.filter((purpose) => purpose !== null)
        )
        expect([...new Set(named)].toSorted()).toEqual(storedPurposes.toSorted())
      })
  )

  it.effect("are guarded in every table, and no more afterwards", () =>
    within(
      Effect.gen(function* () {
        const { guards } = yield* begun
        expect(yield* guards.unguarded(mine)).toEqual([])
        // Again, as by a command that was interrupted.
        yield* guards.install(mine)
        yield* guards.remove(mine)
        expect((yield* guards.unguarded(mine)).length).toBe((yield* Tables.ofTenants).length)
      })
    )
  )

  it.effect("are noted by their keys when they change, and those of others are not", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* begun
        yield* converse(other, "cnv_2")
        expect(yield* changes).toEqual([])
        yield* converse(mine, "cnv_1")
        yield* sql`update conversations set state = 'HUMAN_REQUESTED' where tenant_id = ${mine}`
        yield* sql`insert into passages (tenant_id, hash, source_name, title, heading, url, content)
          values (${mine}, '\\x00ff', '', '', '', '', '')`
        yield* sql`insert into tenant_usage (tenant_id, period_start) values (${mine}, '2026-01-01T00:00:00Z')`
        yield* sql`delete from conversations where tenant_id = ${mine}`
        const noted = yield* changes
        expect(noted.filter(({ name }) => name === "conversations")).toEqual([
          { name: "conversations", key: [mine, "cnv_1"] },
          { name: "conversations", key: [mine, "cnv_1"] },
          { name: "conversations", key: [mine, "cnv_1"] }
        ])
        expect(noted).toContainEqual({ name: "passages", key: [mine, "\\x00ff"] })
        expect(noted.map(({ name }) => name)).toContain("tenant_usage")
        // The entry that told of the change of state, and its removal with the conversation.
        expect(noted.filter(({ name }) => name === "conversation_entries").length).toBe(2)
      })
    )
  )

  it.effect(
    "cannot be changed where the tenant is not served, and statements about all tenants leave them out",
    () =>
      within(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { moves } = yield* begun
          yield* converse(mine, "cnv_1")
          yield* sql`delete from tenant_moves_changes`
          yield* moves.hold(mine, driver, ["serving"], "draining", "10 seconds")
          yield* moves.hold(mine, driver, ["draining"], "pausing", "10 seconds")
          expect(yield* moves.fence(mine, driver, "2 seconds")).toBe(true)
          const touched = sql`update conversations set updated_at = now() where tenant_id = ${mine}`
          expect(yield* Effect.flip(touched)).toHaveProperty("cause.code", "SM001")
          expect(yield* Effect.flip(converse(mine, "cnv_2"))).toHaveProperty("cause.code", "SM001")
          yield* converse(other, "cnv_2")
          expect(yield* moves.handOver(mine, driver)).toBe(true)
          expect(yield* Effect.flip(touched)).toHaveProperty("cause.code", "SM001")
          const swept = yield* sql<{ readonly id: string }>`/* every tenant: sweep */
          update conversations set updated_at = now() returning tenant_id as id`
          expect(swept.map(({ id }) => id)).toEqual([other])
          expect(
            yield* sql`select tenant_is_swept(${mine}) as mine, tenant_is_swept(${other}) as other`
          ).toEqual([{ mine: false, other: true }])
          // Whoever copies them may.
          yield* sql.withTransaction(
            Effect.zipRight(sql`select set_config('spoke.applying', ${mine}, true)`, touched)
          )
          expect(yield* changes).toEqual([])
          expect(yield* moves.serve(mine, driver, 1)).toBe(false)
          expect(yield* moves.serve(mine, "another", 2)).toBe(false)
          expect(yield* moves.serve(mine, driver, 2)).toBe(true)
          yield* touched
        })
      )
  )

  it.effect("are fenced only when nobody is writing them, and no handover leaves a change behind", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { moves } = yield* begun
        yield* moves.hold(mine, driver, ["serving"], "draining", "10 seconds")
        yield* moves.hold(mine, driver, ["draining"], "pausing", "10 seconds")
        if (engine === "server") {
          // Its transaction ends after an attempt to fence has given up.
          const writing = yield* Effect.fork(
            sql.withTransaction(Effect.zipRight(converse(mine, "cnv_1"), Effect.sleep("600 millis")))
          )
          yield* Effect.sleep("200 millis")
          expect(yield* moves.fence(mine, driver, "100 millis")).toBe(false)
          expect(yield* moves.fence(mine, driver, "5 seconds")).toBe(true)
          yield* Fiber.join(writing)
        } else {
          yield* converse(mine, "cnv_1")
          expect(yield* moves.fence(mine, driver, "1 second")).toBe(true)
        }
        expect(yield* moves.handOver(mine, driver)).toBe(false)
        yield* sql`delete from tenant_moves_changes`
        expect(yield* moves.handOver(mine, "another")).toBe(false)
        expect(yield* moves.handOver(mine, driver)).toBe(true)
      })
    )
  )

  it.effect(
    "have jobs that wait elsewhere while the tenant is not served, and are queued once afterwards",
    () =>
      within(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const jobs = yield* HeldJobs
          const { moves } = yield* begun
          yield* sql`insert into channels (tenant_id, id, agent_id, channel, external_id, access_token)
          values (${mine}, 'chn_1', ${`agt_${mine}`}, 'whatsapp', '4911', 'v1.a.b')`
          const put = (id: string, owner: string, payload: object) => sql`
          insert into queue_jobs (id, queue, owner, payload, max_attempts)
          values (${id}, 'webhook-outbound', ${owner}, ${JSON.stringify(payload)}::jsonb, 3)`
          const queued = Effect.map(
            sql<{ readonly id: string }>`select id from queue_jobs order by seq`,
            (rows) => rows.map(({ id }) => id)
          )
          yield* put("qjb_1", "system", { tenantId: mine })
          yield* put("qjb_2", `${mine}/whk_1`, {})
          yield* put("qjb_3", other, { tenantId: other })
          yield* moves.hold(mine, driver, ["serving"], "draining", "10 seconds")
          yield* jobs.take(mine, { running: false })
          yield* put("qjb_4", "system", { tenantId: mine })
          yield* put("qjb_5", "whatsapp:4911", { inboxId: "inb_1" })
          yield* put("qjb_6", "whatsapp:4912", { inboxId: "inb_2" })
          expect(yield* queued).toEqual(["qjb_3", "qjb_6"])
          expect((yield* jobs.read(mine)).map(({ id }) => id)).toEqual(["qjb_1", "qjb_2", "qjb_4", "qjb_5"])
          yield* moves.release(mine, driver)
          yield* jobs.requeue(mine)
          yield* jobs.requeue(mine)
          expect(yield* queued).toEqual(["qjb_3", "qjb_6", "qjb_1", "qjb_2", "qjb_4", "qjb_5"])
          // What has arrived once is not queued when it arrives again.
          yield* sql`delete from queue_jobs where id = 'qjb_1'`
          const [job] = yield* sql<{ readonly id: string; readonly job: unknown; readonly event: unknown }>`
          select id, job, event from tenant_moves_jobs where id = 'qjb_1'`
          if (job !== undefined) yield* jobs.store(mine, [job])
          yield* jobs.requeue(mine)
          expect(yield* queued).not.toContain("qjb_1")
        })
      )
  )

  it.effect("are served again when the command does not come back", () =>
    within(
      Effect.gen(function* () {
        const { moves } = yield* begun
        yield* moves.hold(mine, driver, ["serving"], "draining", "10 seconds")
        yield* moves.hold(mine, driver, ["draining"], "pausing", "100 millis")
        expect(yield* moves.fence(mine, driver, "1 second")).toBe(true)
        expect(yield* moves.releaseExpired).toEqual([])
        yield* Effect.sleep("150 millis")
        expect(yield* moves.releaseExpired).toEqual([{ tenantId: mine }])
        expect(yield* moves.handOver(mine, driver)).toBe(false)
        yield* converse(mine, "cnv_1")
      })
    )
  )
})
