/** Triggers and states of the database for the rows of a tenant that is being moved. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { StoredPurpose } from "../../../src/domain/StoredPurpose.ts"
import { forEveryTenant } from "../../../src/concurrency/TenantSession.ts"
import { TenantId } from "../../../src/domain/Ids.ts"
import * as Tables from "../../../src/store/archive/Tables.ts"
import { MoveGuards } from "../../../src/store/moves/Guards.ts"
import { Arrivals } from "../../../src/store/moves/Arrivals.ts"
import { Departures } from "../../../src/store/moves/Departures.ts"
import { HeldJobs } from "../../../src/store/moves/HeldJobs.ts"
import { MoveStore } from "../../../src/store/moves/Moves.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { tables as kinds, tenantTables } from "../TenantTables.ts"

const mine = TenantId.make("ten_mine")
const other = TenantId.make("ten_other")
const driver = "driver"

/** Tables of the installation with a column for the tenant, whose rows are moved with it. */
const alsoMoved = ["billing_events", "email_logs", "tenants"]

eachEngineLive("Rows of a tenant that is being moved", (it, engine) => {
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
      Effect.provide([Arrivals.Default, Departures.Default, HeldJobs.Default]),
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

  it.effect("are those of all tables of tenants, and of no others", () =>
    Effect.gen(function* () {
      const found = (yield* Tables.ofTenants).map(({ table }) => table)
      expect(found.toSorted()).toEqual([...tenantTables, ...alsoMoved].toSorted())
      expect(Object.keys(kinds).filter((name) => name.startsWith("tenant_moves")).length).toBe(4)
    })
  )

  it.effect("have a sealing purpose for every sealed column, so that they can be sealed again", () =>
    Effect.gen(function* () {
      const named = (yield* Tables.ofTenants).flatMap(({ sealed }) =>
        sealed.filter((purpose) => purpose !== null)
      )
      expect([...new Set(named)].toSorted()).toEqual(StoredPurpose.literals.toSorted())
    })
  )

  it.effect("are guarded in every table during the move, and not afterwards", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const guarded = Effect.map(
          sql<{ readonly name: string }>`
            select c.relname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
            where t.tgname in (${`tenant_moves_w_${mine}`}, ${`tenant_moves_d_${mine}`}) and t.tgparentid = 0
            group by c.relname having count(*) = 2`,
          (rows) => rows.map(({ name }) => name).toSorted()
        )
        const { guards } = yield* begun
        const all = (yield* Tables.ofTenants).map(({ table }) => table).toSorted()
        expect(yield* guarded).toEqual(all)
        // Again, as by a command that was interrupted.
        yield* guards.install(mine)
        expect(yield* guarded).toEqual(all)
        yield* guards.remove(mine)
        expect(yield* guarded).toEqual([])
      })
    )
  )

  it.effect("are recorded by their keys when they change, and rows of others are not", () =>
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

  it.effect("cannot be changed where the tenant is not served, and sweeps skip them", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { moves } = yield* begun
        yield* converse(mine, "cnv_1")
        yield* sql`delete from tenant_moves_changes`
        yield* moves.hold(mine, driver, ["serving"], "draining", "1 minute")
        yield* moves.hold(mine, driver, ["draining"], "pausing", "1 minute")
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

  it.effect("are fenced only when no transaction is writing them, and a handover loses no change", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { moves } = yield* begun
        yield* moves.hold(mine, driver, ["serving"], "draining", "1 minute")
        yield* moves.hold(mine, driver, ["draining"], "pausing", "1 minute")
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

  it.effect("have jobs that are held while the tenant is not served, and queued once afterwards", () =>
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
        yield* moves.hold(mine, driver, ["serving"], "draining", "1 minute")
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

  it.effect(
    "are copied completely in rounds of bounded size, and rows of others with the same key stay",
    () =>
      within(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const departures = yield* Departures
          const arrivals = yield* Arrivals
          yield* begun
          const tables = yield* Tables.ofTenants
          const events = tables.find(({ table }) => table === "billing_events")
          if (events === undefined) return yield* Effect.die("There is no such table.")
          yield* sql`
          insert into billing_events (id, tenant_id, object_id, created, rank, fact) values ('evt_1', ${mine}, 'sub_1', 1, 1, '{}')`
          yield* converse(mine, "cnv_1")
          // Each of them fills a round.
          yield* sql`
          insert into messages (tenant_id, id, conversation_id, agent_id, position, role, content)
          select ${mine}, 'msg_' || n, 'cnv_1', ${`agt_${mine}`}, n, 'user', repeat('x', 3000000) from generate_series(1, 3) n`
          const sizes: Array<number> = []
          const seen = new Set<string>()
          for (let more = true; more;) {
            const round = yield* departures.changes(mine, tables, 500)
            sizes.push(round.changes.reduce((all, { rows }) => all + rows.join("").length, 0))
            for (const { rows, table } of round.changes)
              for (const row of rows) seen.add(`${table} ${row.slice(0, 40)}`)
            yield* departures.acknowledge(mine, round.seqs)
            more = round.more
          }
          expect(sizes.length).toBe(3)
          expect(Math.max(...sizes)).toBeLessThan(6_000_000)
          expect([...seen].filter((name) => name.startsWith("messages ")).length).toBe(3)
          expect(yield* changes).toEqual([])

          // The same event is another tenant's here.
          const { changes: found } = yield* Effect.zipRight(
            sql`update billing_events set rank = 2`,
            departures.changes(mine, [events], 500)
          )
          yield* sql`update billing_events set tenant_id = ${other}, rank = 3`
          yield* sql`update tenant_moves set state = 'away'`
          const rows = found.flatMap((change) => change.rows)
          expect(rows.length).toBe(1)
          const refused = yield* Effect.flip(
            arrivals.changes(mine, driver, [{ table: events, rows, gone: [] }])
          )
          expect(refused).toMatchObject({ reason: "differs" })
          yield* arrivals.page(mine, driver, events, rows)
          yield* arrivals.changes(mine, driver, [{ table: events, rows: [], gone: [["evt_1"]] }])
          const foreign = rows.map((row) => row.replace(`"${mine}"`, `"${other}"`).replace("evt_1", "evt_2"))
          yield* arrivals.page(mine, driver, events, foreign)
          expect(yield* sql`select id, tenant_id as tenant, rank from billing_events`).toEqual([
            { id: "evt_1", tenant: other, rank: 3 }
          ])
        })
      )
  )

  it.effect("are not fenced while a turn runs that was accepted before the pause", () =>
    within(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { moves } = yield* begun
        yield* converse(mine, "cnv_1")
        yield* moves.hold(mine, driver, ["serving"], "draining", "1 minute")
        yield* moves.hold(mine, driver, ["draining"], "pausing", "1 minute")
        yield* sql`
          insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message,
            period_start, status)
          select 'run_1', tenant_id, agent_id, id, 1, 'ins_1', 'msg_1', 'Hello', period_start_of(tenant_id), 'running'
          from conversations where tenant_id = ${mine}`
        expect(yield* moves.fence(mine, driver, "200 millis", { awaitsTurns: true })).toBe(false)
        // It is not refused what it writes.
        const ending = sql`update agent_runs set status = 'complete' where id = 'run_1'`
        const [fenced] = yield* Effect.all(
          [
            moves.fence(mine, driver, "10 seconds", { awaitsTurns: true }),
            Effect.delay(ending, "100 millis")
          ],
          { concurrency: "unbounded" }
        )
        expect(fenced).toBe(true)
      })
    )
  )

  it.effect("are served again when the command does not continue", () =>
    within(
      Effect.gen(function* () {
        const { moves } = yield* begun
        yield* moves.hold(mine, driver, ["serving"], "draining", "1 minute")
        yield* moves.hold(mine, driver, ["draining"], "pausing", "1 minute")
        expect(yield* moves.fence(mine, driver, "10 seconds")).toBe(true)
        expect(yield* moves.releaseExpired).toEqual([])
        const sql = yield* SqlClient.SqlClient
        yield* sql`update tenant_moves set held_until = clock_timestamp() - interval '1 second'`
        // No decision is made once the hold is over, whether it was noticed or not.
        expect(yield* moves.handOver(mine, driver)).toBe(false)
        expect(yield* moves.releaseExpired).toEqual([{ tenantId: mine }])
        expect(yield* moves.handOver(mine, driver)).toBe(false)
        yield* converse(mine, "cnv_1")
      })
    )
  )
})
