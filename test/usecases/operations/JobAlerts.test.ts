import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as DedupeSql from "../../../src/capabilities/DedupeStore/Sql.ts"
import { JobFailure, JobQueue } from "../../../src/capabilities/JobQueue.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import { layerNone } from "../../../src/capabilities/Mailer/None.ts"
import { layerSmtp } from "../../../src/capabilities/Mailer/Smtp.ts"
import { OutgoingMailStore } from "../../../src/store/accounts/OutgoingMails.ts"
import { AlertRecipient, JobAlerts } from "../../../src/usecases/operations/JobAlerts.ts"
import { mailServer, password } from "../../servers/MailServer.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const to = "ops@example.com"

const over = (mailer: ReturnType<typeof layerSmtp> | typeof layerNone, recipient: string | null = to) =>
  JobAlerts.Default.pipe(
    Layer.provide(Layer.succeed(AlertRecipient, recipient)),
    Layer.provide(Layer.mergeAll(mailer, DedupeSql.layerSql, OutgoingMailStore.Default)),
    Layer.provideMerge(layerTable),
    Layer.build
  )

/** As if a worker had given them up some seconds ago. */
const fail = (queue: string, ids: ReadonlyArray<string>, ago = "5 seconds") =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      insert into queue_jobs (id, queue, payload, state, attempts, max_attempts, last_error, finished_at)
      select id, ${queue}, '{"secret": "hunter2"}', 'failed', 5, 5, 'No route.', now() - ${ago}::interval
      from unnest(${[...ids]}::text[]) as given (id)`
  )

const logs = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`
    select recipient, kind, status, provider_message_id, last_error, sent_at is not null as told from email_logs order by id`
)

/** As if five minutes had gone by. */
const later = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`delete from dedupe_keys`)

eachEngineLive("Jobs that failed for good", (it) => {
  it.scoped("are reported in one mail per queue with their number, and logged", () =>
    Effect.gen(function* () {
      yield* reset
      const { received, url } = yield* mailServer({ answer: "queued as m1" })
      const { sweep } = Context.get(yield* over(layerSmtp({ url, from: to })), JobAlerts)
      yield* sweep
      expect(received).toEqual([])
      yield* fail("channel-inbound", ["qjb_1", "qjb_2", "qjb_3"])
      yield* fail("ingestion", ["qjb_4"])
      yield* fail("embedding", ["qjb_5"], "25 hours")
      yield* sweep
      expect(received).toHaveLength(2)
      const raw = received.map((mail) => mail.raw).join("\n")
      expect(raw).toContain("Subject: Spoke: 3 failed in channel-inbound")
      expect(raw).toContain("Subject: Spoke: 1 failed in ingestion")
      expect(raw).toContain("qjb_4")
      for (const secret of ["hunter2", password, "No route"]) expect(raw).not.toContain(secret)
      const log = { recipient: to, status: "sent", provider_message_id: "m1", last_error: null, told: true }
      expect(yield* logs).toEqual(
        expect.arrayContaining([
          { ...log, kind: "job_failed:channel-inbound" },
          { ...log, kind: "job_failed:ingestion" }
        ])
      )
    })
  )

  it.scoped(
    "cause at most one mail per queue in five minutes over all processes, which then counts the rest",
    () =>
      Effect.gen(function* () {
        yield* reset
        const { received, url } = yield* mailServer()
        const mailer = layerSmtp({ url, from: to })
        const here = Context.get(yield* over(mailer), JobAlerts)
        const there = Context.get(yield* over(mailer), JobAlerts)
        yield* fail("ingestion", ["qjb_1"])
        yield* Effect.all([here.sweep, there.sweep, here.sweep], { concurrency: "unbounded" })
        expect(received).toHaveLength(1)
        yield* fail("ingestion", ["qjb_2", "qjb_3"], "0 seconds")
        yield* Effect.sleep("2100 millis")
        yield* there.sweep
        expect(received).toHaveLength(1)
        yield* later
        yield* there.sweep
        yield* later
        yield* here.sweep
        expect(received).toHaveLength(2)
        expect(received[1]?.raw).toContain("Subject: Spoke: 2 failed in ingestion")
      })
  )

  it.scoped("are reported again when the mail could not be sent, and the log has the reason", () =>
    Effect.gen(function* () {
      yield* reset
      const { received, url } = yield* mailServer()
      const refused = Context.get(yield* over(layerSmtp({ url, from: to }), "refused@example.com"), JobAlerts)
      yield* fail("ingestion", ["qjb_1"])
      yield* refused.sweep
      expect(yield* logs).toMatchObject([
        { status: "failed", last_error: "The mail server did not accept the mail (EENVELOPE, 550)." }
      ])
      yield* later
      yield* Context.get(yield* over(layerSmtp({ url, from: to })), JobAlerts).sweep
      expect(received).toHaveLength(1)
    })
  )

  it.scoped(
    "are reported again with the same id when the server did not answer, unless more have failed",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const { received, url } = yield* mailServer()
        const { sweep } = Context.get(yield* over(layerSmtp({ url, from: to })), JobAlerts)
        const sent = Effect.sync(() => received.map(({ raw }) => /^Message-ID: (.*)$/mu.exec(raw)?.[1]))
        yield* fail("ingestion", ["qjb_1"])
        for (let times = 0; times < 2; times++) {
          yield* sweep
          // As if the answer to the mail had been lost.
          yield* sql`update email_logs set status = 'failed'`
          yield* later
        }
        yield* fail("ingestion", ["qjb_2"])
        yield* sweep
        const [first, again, more, ...others] = yield* sent
        expect([again, others]).toEqual([first, []])
        expect(more).not.toBe(first)
      })
  )

  it.scoped("are reported again when the process that sent the mail ended", () =>
    Effect.gen(function* () {
      yield* reset
      const { received, url } = yield* mailServer()
      const { sweep } = Context.get(yield* over(layerSmtp({ url, from: to })), JobAlerts)
      yield* fail("ingestion", ["qjb_1"])
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        insert into email_logs (id, recipient, kind, created_at, updated_at)
        values ('eml_1', ${to}, 'job_failed:ingestion', now() - interval '2 seconds', now())`
      yield* sweep
      expect(received).toEqual([])
      yield* sql`update email_logs set updated_at = now() - interval '10 minutes'`
      yield* sweep
      expect(received).toHaveLength(1)
    })
  )

  it.scoped("are kept and cause no mail if no mail server is configured", () =>
    Effect.gen(function* () {
      yield* reset
      const { received, url } = yield* mailServer()
      yield* fail("ingestion", ["qjb_1"])
      yield* Context.get(yield* over(layerNone), JobAlerts).sweep
      yield* Context.get(yield* over(layerSmtp({ url, from: to }), null), JobAlerts).sweep
      expect(received).toEqual([])
      expect(yield* logs).toEqual([])
    })
  )

  it.scoped("do not block the worker while the mail server is slow", () =>
    Effect.gen(function* () {
      yield* reset
      const { url } = yield* mailServer({ silent: true })
      const built = yield* over(layerSmtp({ url, from: to }))
      const queue = Context.get(built, JobQueue)
      yield* fail("ingestion", ["qjb_0"])
      yield* Effect.forkScoped(Context.get(built, JobAlerts).sweep)
      yield* queue.work("ingestion", 1, () => new JobFailure({ message: "no", fatal: true }))
      yield* queue.enqueueAll("ingestion", [{ payload: {} }, { payload: {} }])
      const sql = yield* SqlClient.SqlClient
      yield* sql`select id from queue_jobs where state = 'failed'`.pipe(
        Effect.repeat({ until: (all) => all.length === 3, schedule: Schedule.spaced("20 millis") }),
        Effect.timeout("5 seconds")
      )
    })
  )
})
