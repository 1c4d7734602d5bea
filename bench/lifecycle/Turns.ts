/** One process of the lifecycle benchmarks: it begins and settles turns on a database, controlled by its parent. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import { randomBytes } from "node:crypto"
import { RunEvent, type RunPassage } from "../../src/domain/chat/AgentRun.ts"
import { ExternalEndUserId } from "../../src/domain/chat/ChatTurn.ts"
import {
  ChunkId,
  DocumentId,
  SourceId,
  newId,
  type ConversationId,
  type RunId
} from "../../src/domain/Ids.ts"
import { AgentRunStore } from "../../src/store/chat/AgentRuns.ts"
import { type Target, Turns } from "../../src/store/chat/Turns.ts"
import { layerPostgres, migrate } from "../../src/store/Database.ts"
import * as Fixtures from "../../test/Fixtures.ts"

interface Command {
  readonly name: "migrate" | "world" | "turns" | "rate" | "reads"
  /** Tenants of the world; turns of `turns` and `rate`; traces that `reads` reads. */
  readonly count: number
  /** Turns at the same time; of `rate`: turns a second. */
  readonly clients: number
}

const [url = "", migrations = ""] = process.argv.slice(2)

/** Turns of one conversation. */
const perConversation = 5
/** Distinct texts that the passages of a tenant are drawn from. */
const texts = 1_000
const passages = 6

type Scope = Effect.Effect.Success<ReturnType<typeof Fixtures.agent>>

const word = () => randomBytes(6).toString("base64url")
const words = (count: number) => Array.from({ length: count }, word).join(" ")
const chunkTexts = Array.from({ length: texts }, () => words(70))

const randomPassages = (): ReadonlyArray<RunPassage> =>
  Array.from({ length: passages }, (_, place) => {
    const chunk = Math.floor(Math.random() * texts)
    return {
      index: place + 1,
      sourceId: SourceId.make("src_00000000000000000000000001"),
      sourceName: "Handbook",
      documentId: DocumentId.make(`doc_${String(chunk).padStart(26, "0")}`),
      chunkId: ChunkId.make(`chk_${String(chunk).padStart(26, "0")}`),
      title: "Handbook",
      heading: "",
      url: "https://help.example.com/",
      text: chunkTexts[chunk] ?? "",
      score: Math.random()
    }
  })

const eventsOf = (runId: RunId, now: DateTime.Utc): ReadonlyArray<RunEvent> =>
  (["retrieval.completed", "model.completed", "run.completed"] as const).map((type, place) =>
    RunEvent.make({
      id: `${runId}:${place + 2}`,
      runId,
      sequence: place + 2,
      type,
      status: type === "run.completed" ? "complete" : "running",
      label: "Wrote a reply",
      timestamp: now,
      payload:
        type === "run.completed" ? {} : { query: words(4), chunks: Array.from({ length: 6 }, () => words(4)) }
    })
  )

const program = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const turns = yield* Turns
  const scopes: Array<Scope> = []
  const begins: Array<number> = []
  const settles: Array<number> = []
  let person = 0
  let last: { readonly scope: Scope; readonly runId: RunId } | undefined
  const reads: Array<number> = []

  const measureInto = <A, E, R>(into: Array<number>, work: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const start = performance.now()
      return Effect.tap(work, () => Effect.sync(() => into.push(performance.now() - start)))
    })

  const turn = (scope: Scope, target: Target, conversationId: ConversationId) =>
    Effect.gen(function* () {
      const runId = yield* newId.run
      const startedAt = yield* DateTime.now
      const opening = {
        target,
        persist: true,
        channel: "api" as const,
        instanceId: "bench",
        runId,
        endUserId: yield* newId.endUser,
        conversationId,
        userMessageId: yield* newId.message,
        message: words(8),
        startedAt,
        startedLabel: "Started",
        timeout: "2 minutes" as const
      }
      const { reserved } = yield* measureInto(begins, turns.begin(scope, opening))
      if (!reserved) return yield* Effect.dieMessage("No turn was reserved.")
      const reply = { id: yield* newId.message, content: words(60), citations: [] }
      const settlement = {
        runId,
        counted: true,
        inputTokens: 900,
        outputTokens: 90,
        reply,
        passages: randomPassages(),
        events: eventsOf(runId, startedAt)
      }
      const { _tag } = yield* measureInto(settles, turns.settle(scope, settlement))
      if (_tag !== "Written") return yield* Effect.dieMessage(_tag)
      last = { scope, runId }
    })

  const client = (scope: Scope, count: number) =>
    Effect.gen(function* () {
      let conversation: ConversationId | null = null
      for (let n = 0; n < count; n++) {
        if (n % perConversation === 0) conversation = null
        const id: ConversationId = conversation ?? (yield* newId.conversation)
        const target: Target =
          conversation === null
            ? { _tag: "External", id: ExternalEndUserId.make(`person-${person++ % 10_000}`) }
            : { _tag: "Conversation", id: conversation }
        yield* turn(scope, target, id)
        conversation = id
      }
    })

  /** At fixed times, whether or not the last one has ended. */
  const rate = (count: number, perSecond: number) =>
    Effect.gen(function* () {
      const start = performance.now()
      const begin = (n: number) =>
        Effect.gen(function* () {
          yield* Effect.sleep(Math.max(0, start + (n * 1_000) / perSecond - performance.now()))
          const scope = scopes[n % scopes.length]
          if (scope !== undefined) yield* client(scope, 1)
        })
      yield* Effect.forEach(
        Array.from({ length: count }, (_, n) => n),
        begin,
        { concurrency: "unbounded" }
      )
    })

  /** Traces of the last turn. */
  const read = (count: number) =>
    Effect.gen(function* () {
      const { trace } = yield* AgentRunStore
      if (last === undefined) return yield* Effect.dieMessage("There was no turn.")
      const { runId, scope } = last
      for (let n = 0; n < count; n++) yield* measureInto(reads, trace(scope, runId, { after: 0, limit: 100 }))
    })

  const commands = yield* Queue.unbounded<Command>()
  process.on("message", (command: Command) => commands.unsafeOffer(command))
  process.once("disconnect", () => process.exit(0))
  type Services = AgentRunStore | SqlClient.SqlClient
  const execute = ({ clients, count, name }: Command): Effect.Effect<unknown, unknown, Services> => {
    switch (name) {
      case "migrate":
        return migrate(migrations)
      case "world":
        return Effect.forEach(Array.from({ length: count }), () =>
          Effect.map(Fixtures.agent(), (scope) => scopes.push(scope))
        )
      case "reads":
        return read(count)
      case "rate":
        return rate(count, clients)
      case "turns":
        return Effect.forEach(
          Array.from({ length: clients }, (_, place) => place),
          (place) => {
            const scope = scopes[place % scopes.length]
            return scope === undefined ? Effect.void : client(scope, Math.ceil(count / clients))
          },
          { concurrency: clients }
        )
    }
  }
  process.send?.({ ready: true })
  yield* Queue.take(commands).pipe(
    Effect.tap((command) =>
      Effect.zipRight(
        execute(command),
        Effect.sync(() =>
          process.send?.({
            done: command.name,
            begins: begins.splice(0),
            settles: settles.splice(0),
            reads: reads.splice(0),
            tenants: scopes.map(({ tenantId }) => tenantId)
          })
        )
      )
    ),
    Effect.forever
  )
  return sql
})

const database = layerPostgres({ url: Redacted.make(url), maxConnections: 16 })
await Effect.runPromise(
  Effect.scoped(program).pipe(
    Effect.provide(Layer.merge(Turns.Default, AgentRunStore.Default).pipe(Layer.provideMerge(database)))
  )
)
