import * as SqlClient from "@effect/sql/SqlClient"
import * as Chunk from "effect/Chunk"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FC from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import * as Stream from "effect/Stream"
import { expect } from "vitest"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { AgentId, ConversationId, newId } from "../../../src/domain/Ids.ts"
import { ConversationImports } from "../../../src/store/conversations/ConversationImports.ts"
import { ConversationStore } from "../../../src/store/conversations/Conversations.ts"
import { LegacyMessages } from "../../../src/store/conversations/LegacyMessages.ts"
import { Turns } from "../../../src/store/chat/Turns.ts"
import { Conversations } from "../../../src/usecases/conversations/Conversations.ts"
import { ImportConversations } from "../../../src/usecases/conversations/ImportConversations.ts"
import { LegacyKeys } from "../../../src/usecases/conversations/LegacyKeys.ts"
import { agent } from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const stack = Layer.mergeAll(Conversations.Default, ImportConversations.Default, LegacyKeys.Default).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      ConversationImports.Default,
      ConversationStore.Default,
      LegacyMessages.Default,
      Turns.Default
    )
  )
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, effect).pipe(Effect.provide(stack))

const line = (id: string, contents: ReadonlyArray<string>, fields: object = {}) =>
  JSON.stringify({
    id,
    messages: contents.map((content, index) => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content,
      createdAt: `2024-05-01T09:30:0${index % 10}.000Z`
    })),
    ...fields
  })

/** A turn as it is begun and settled: the user's message and a reply. */
const turn = (scope: ReadScope, conversationId: ConversationId, text: string) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    const runId = yield* newId.run
    const userMessageId = yield* newId.message
    const replyId = yield* newId.message
    const admission = yield* turns.begin(scope, {
      target: { _tag: "Conversation", id: conversationId },
      persist: true,
      channel: "api",
      instanceId: "test",
      runId,
      endUserId: yield* newId.endUser,
      conversationId,
      userMessageId,
      message: text,
      startedAt: yield* DateTime.now,
      startedLabel: "Started",
      timeout: "1 minute"
    })
    const settled = yield* turns.settle(scope, {
      runId,
      counted: true,
      inputTokens: 1,
      outputTokens: 1,
      reply: { id: replyId, content: `re ${text}`, citations: [] },
      events: []
    })
    expect(settled._tag).toBe("Written")
    return { history: admission.history.map(({ content }) => content), ids: [userMessageId, replyId] }
  })

const imported = (scope: ReadScope, text: string) =>
  Effect.flatMap(ImportConversations, (imports) => imports.run(text, scope.agentId))

const contentsOf = (scope: ReadScope, id: ConversationId) =>
  Effect.gen(function* () {
    const conversations = yield* Conversations
    const { messages } = yield* conversations.get(scope, id)
    return Chunk.toReadonlyArray(yield* Stream.runCollect(messages)).map(({ content }) => content)
  })

const all = (scope: ReadScope) =>
  Effect.flatMap(Conversations, (conversations) => conversations.list(scope, { limit: 100 }))

const only = (scope: ReadScope) =>
  Effect.map(all(scope), ({ rows }) => {
    const [row] = rows
    if (row === undefined) throw new Error("There is no conversation.")
    return row
  })

eachEngineLive("An import", (it) => {
  it.effect("stores conversations unchanged, and a repeated import stores nothing twice", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const text = [line("a", ["Hi", "Hello", "Bye"]), line("b", ["One"])].join("\n")
      expect(yield* imported(scope, text)).toEqual({ imported: 2, messages: 4, repeated: 0, problems: [] })
      expect(yield* imported(scope, `${text}\n${line("c", ["Two"])}\n`)).toEqual({
        imported: 1,
        messages: 1,
        repeated: 2,
        problems: []
      })
      const { rows } = yield* all(scope)
      expect(rows.map(({ messageCount }) => messageCount).toSorted()).toEqual([1, 1, 3])
      expect(rows.every(({ channel, state }) => channel === "api" && state === "AI_ACTIVE")).toBe(true)
      expect(new Set(rows.map(({ createdAt }) => DateTime.formatIso(createdAt)))).toEqual(
        new Set(["2024-05-01T09:30:00.000Z"])
      )
    }).pipe(onFreshData)
  )

  it.effect("identifies a line without an id by its text, and imports a repeated line once", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const unnamed = line("", ["Hi"], { id: undefined })
      const report = yield* imported(scope, [unnamed, unnamed, line("a", ["x"]), line("a", ["y"])].join("\n"))
      expect(report).toMatchObject({ imported: 2, repeated: 2, problems: [] })
      expect(yield* imported(scope, unnamed)).toMatchObject({ imported: 0, repeated: 1 })
    }).pipe(onFreshData)
  )

  it.effect("stores each line once when the same lines are imported concurrently", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const text = Array.from({ length: 30 }, (_, place) =>
        line(`c${place}`, ["Hi"], { externalEndUserId: `user ${place % 3}` })
      )
      const reports = yield* Effect.all(
        [imported(scope, text.join("\n")), imported(scope, text.toReversed().join("\n"))],
        { concurrency: 2 }
      )
      expect(reports.map(({ imported, repeated }) => imported + repeated)).toEqual([30, 30])
      expect(reports.reduce((sum, { imported }) => sum + imported, 0)).toBe(30)
      const { rows } = yield* all(scope)
      expect([rows.length, new Set(rows.map(({ endUserId }) => endUserId)).size]).toEqual([30, 3])
    }).pipe(onFreshData)
  )

  it.effect("reports every refused line without its content, and stores nothing of it", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const bad = [
        "secret that is no JSON",
        JSON.stringify({ id: "x", messages: [] }),
        line("y", ["ok", "secret"]).replace("assistant", "secret"),
        line("z", ["ok"]).replace("2024-05-01T09:30:00.000Z", "yesterday, a secret"),
        line("w", ["ok"], { agentId: "agt_secret" }),
        ...[
          "2024-02-30T09:30:00Z",
          "2023-02-29T09:30:00Z",
          "2024-13-01T09:30:00Z",
          "2024-05-01T25:30:00Z"
        ].map((time) => line("v", ["ok"]).replace("2024-05-01T09:30:00.000Z", time))
      ]
      const noTime =
        "messages.0.createdAt: Expected an ISO 8601 time with its zone, like 2024-05-01T09:30:00.000Z"
      const report = yield* imported(scope, ["", line("a", ["Hi"]), ...bad, line("b", ["Hi"])].join("\n"))
      expect(report).toMatchObject({ imported: 2, messages: 2, repeated: 0 })
      expect(report.problems.map((problem) => problem.line)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11])
      expect(JSON.stringify(report.problems)).not.toContain("secret")
      expect(report.problems.map(({ message }) => message)).toEqual([
        "Expected a JSON object with messages",
        expect.stringContaining("messages"),
        'messages.1.role: Expected "user" or "assistant"',
        noTime,
        "agentId: There is no such agent",
        noTime,
        noTime,
        noTime,
        noTime
      ])
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select count(*)::int as n from end_users`).toEqual([{ n: 2 }])
      const without = yield* Effect.flatMap(ImportConversations, (run) =>
        run.run(line("q", ["Hi"]), undefined)
      )
      expect(without.problems).toEqual([{ line: 1, message: expect.stringContaining("agentId") }])
    }).pipe(onFreshData)
  )

  it.effect("keeps messages of the same time in their order, and sorts the others by time", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const contents = Array.from({ length: 40 }, (_, place) => String(place))
      yield* imported(scope, line("a", contents))
      yield* Effect.flatMap(LegacyKeys, ({ run }) => run)
      const { id } = yield* only(scope)
      const expected = contents.toSorted((a, b) => (Number(a) % 10) - (Number(b) % 10))
      expect(yield* contentsOf(scope, id)).toEqual(expected)
    }).pipe(onFreshData)
  )
})

eachEngineLive("Messages that came without a key", (it, engine) => {
  it.effect(
    "delay the pages until they have a position, are in the prompt meanwhile, and come before later messages",
    () =>
      Effect.gen(function* () {
        const scope = yield* agent()
        yield* imported(scope, line("a", ["1", "2", "3"]))
        const { id } = yield* only(scope)
        const conversations = yield* Conversations
        const place = { after: undefined, limit: 50 }
        expect(yield* Effect.flip(conversations.messages(scope, id, place))).toMatchObject({
          _tag: "PAGINATION_NOT_READY"
        })
        expect((yield* Effect.flip(conversations.get(scope, id)))._tag).toBe("PAGINATION_NOT_READY")
        const first = yield* turn(scope, id, "4")
        expect(first.history).toEqual(["1", "2", "3"])
        const legacy = yield* LegacyMessages
        expect(yield* legacy.giveKeys(2)).toBe(2)
        expect((yield* Effect.flip(conversations.messages(scope, id, place)))._tag).toBe(
          "PAGINATION_NOT_READY"
        )
        const second = yield* turn(scope, id, "5")
        expect(second.history).toEqual(["1", "2", "3", "4", "re 4"])
        expect([yield* legacy.giveKeys(2), yield* legacy.giveKeys(2)]).toEqual([1, 0])
        const page = yield* conversations.messages(scope, id, place)
        expect(page.rows.map(({ content }) => content)).toEqual(["1", "2", "3", "4", "re 4", "5", "re 5"])
        expect(page.next).toBeNull()
        expect((yield* only(scope)).messageCount).toBe(7)
        expect((yield* turn(scope, id, "6")).history).toEqual(page.rows.map(({ content }) => content))
      }).pipe(onFreshData)
  )

  it.effect("do not invalidate a cursor from before they came", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      yield* imported(scope, line("a", ["1", "2"]))
      const legacy = yield* LegacyKeys
      yield* legacy.run
      const { id } = yield* only(scope)
      yield* turn(scope, id, "3")
      const conversations = yield* Conversations
      const { next } = yield* conversations.messages(scope, id, { after: undefined, limit: 2 })
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        insert into messages (id, tenant_id, conversation_id, agent_id, role, content)
        values ('msg_old', ${scope.tenantId}, ${id}, ${scope.agentId}, 'user', '0')`
      yield* legacy.run
      const page = yield* conversations.messages(scope, id, { after: next ?? undefined, limit: 2 })
      expect(page.rows.map(({ content }) => content)).toEqual(["3", "re 3"])
      expect(yield* contentsOf(scope, id)).toEqual(["0", "1", "2", "3", "re 3"])
    }).pipe(onFreshData)
  )

  // The embedded database has one connection, on which a batch is as short as any other statement.
  if (engine === "server")
    it.effect("get positions while turns continue: an uncommitted batch blocks no turn", () =>
      Effect.gen(function* () {
        const scope = yield* agent()
        yield* imported(scope, line("a", ["1", "2", "3"]))
        const { id } = yield* only(scope)
        const sql = yield* SqlClient.SqlClient
        const legacy = yield* LegacyMessages
        const given = yield* Deferred.make<void>()
        const allStarted = yield* Deferred.make<void>()
        const batch = yield* legacy.giveKeys(500).pipe(
          Effect.tap(() => Deferred.succeed(given, undefined)),
          Effect.tap(() => Deferred.await(allStarted)),
          sql.withTransaction,
          Effect.fork
        )
        yield* Deferred.await(given)
        const said = yield* Effect.timeout(turn(scope, id, "4"), "20 seconds")
        expect(said.history).toEqual(["1", "2", "3"])
        // Nor does anybody see half of it.
        const place = { after: undefined, limit: 50 }
        const waits = yield* Effect.flip((yield* Conversations).messages(scope, id, place))
        expect(waits._tag).toBe("PAGINATION_NOT_READY")
        yield* Deferred.succeed(allStarted, undefined)
        expect(yield* Fiber.join(batch)).toBe(3)
        expect(yield* contentsOf(scope, id)).toEqual(["1", "2", "3", "4", "re 4"])
      }).pipe(onFreshData)
    )

  it.effect("are read without blocking other requests", () =>
    Effect.gen(function* () {
      const contents = Array.from({ length: 50 }, (_, place) => String(place))
      // Its last message has no such role.
      const wrong = line("c", contents).replace(/"assistant"(?!.*"assistant")/u, '"nobody"')
      let turns = 0
      let next = setImmediate(function turn() {
        turns++
        next = setImmediate(turn)
      })
      const imports = yield* ImportConversations
      const { problems } = yield* imports.run(Array.from({ length: 500 }, () => wrong).join("\n"), undefined)
      clearImmediate(next)
      expect(problems).toHaveLength(500)
      expect(turns).toBeGreaterThan(5)
    }).pipe(onFreshData)
  )

  it.effect("get positions once, even if several processes try", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const text = Array.from({ length: 40 }, (_, place) => line(`c${place}`, ["1", "2", "3", "4", "5"]))
      yield* imported(scope, text.join("\n"))
      const legacy = yield* LegacyMessages
      const drain = Effect.repeat(legacy.giveKeys(7), { times: 60 })
      yield* Effect.all([drain, drain, drain], { concurrency: 3 })
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`
        select count(*)::int as n, min(position)::int as least, max(position)::int as most,
          array_agg(content order by position) as contents
        from messages group by conversation_id`
      expect(rows.length).toBe(40)
      expect(new Set(rows.map((row) => JSON.stringify(row)))).toEqual(
        new Set([JSON.stringify({ n: 5, least: -4, most: 0, contents: ["1", "2", "3", "4", "5"] })])
      )
    }).pipe(onFreshData)
  )
})

eachEngineLive("Conversations", (it) => {
  it.effect("of another agent, tenant or channel do not exist for a key's scope", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const other = yield* agent()
      yield* imported(scope, line("a", ["1"]))
      yield* Effect.flatMap(LegacyKeys, ({ run }) => run)
      const { id } = yield* only(scope)
      const conversations = yield* Conversations
      const strangers = [
        other,
        { ...scope, tenantId: other.tenantId },
        { ...scope, agentId: AgentId.make("agt_none") },
        { ...scope, channel: "widget" as const }
      ]
      for (const stranger of strangers) {
        expect((yield* conversations.list(stranger, { limit: 10 })).rows).toEqual([])
        expect((yield* Effect.flip(conversations.get(stranger, id)))._tag).toBe("NOT_FOUND")
        const page = conversations.messages(stranger, id, { after: undefined, limit: 1 })
        expect((yield* Effect.flip(page))._tag).toBe("NOT_FOUND")
      }
      expect(yield* contentsOf(scope, id)).toEqual(["1"])
    }).pipe(onFreshData)
  )

  it.effect("are read completely, as of the beginning, while turns continue", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const contents = Array.from({ length: 950 }, (_, place) => String(place))
      yield* imported(
        scope,
        JSON.stringify({
          id: "long",
          messages: contents.map((content) => ({ role: "user", content, createdAt: "2024-05-01T09:30:00Z" }))
        })
      )
      yield* Effect.flatMap(LegacyKeys, ({ run }) => run)
      const { id } = yield* only(scope)
      const conversations = yield* Conversations
      const { messages } = yield* conversations.get(scope, id)
      const said: Array<string> = []
      yield* Stream.runForEach(messages, ({ content }) =>
        Effect.sync(() => said.push(content)).pipe(
          Effect.zipRight(said.length % 300 === 0 ? turn(scope, id, "more") : Effect.void)
        )
      )
      expect(said).toEqual(contents)
    }).pipe(onFreshData)
  )

  it.effect("that are deleted during the reading fail it, so that a part is not taken for the whole", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      yield* imported(
        scope,
        line(
          "a",
          Array.from({ length: 500 }, () => "x")
        )
      )
      yield* Effect.flatMap(LegacyKeys, ({ run }) => run)
      const { id } = yield* only(scope)
      const { messages } = yield* Effect.flatMap(Conversations, (all) => all.get(scope, id))
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from conversations`
      const ended = yield* Effect.exit(Stream.runDrain(messages))
      expect(ended._tag).toBe("Failure")
    }).pipe(onFreshData)
  )

  it.effect("can be paged while turns settle, without lost or repeated messages", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      yield* imported(scope, line("a", ["1", "2", "3"]))
      yield* Effect.flatMap(LegacyKeys, ({ run }) => run)
      const { id } = yield* only(scope)
      const conversations = yield* Conversations
      const said = yield* Effect.fork(
        Effect.forEach(Array.from({ length: 12 }), (_, place) => turn(scope, id, `t${place}`), {
          concurrency: 3
        })
      )
      const sql = yield* SqlClient.SqlClient
      const seen: Array<string> = []
      let after: number | undefined
      let done = false
      while (!done) {
        const ended = yield* Fiber.poll(said)
        const page = yield* conversations.messages(scope, id, { after, limit: 3 })
        seen.push(...page.rows.map((message) => message.id))
        const [last] = yield* sql<{ readonly position: number }>`
          select position::int from messages where id = ${seen.at(-1) ?? ""}`
        after = last?.position
        done = ended._tag === "Some" && page.next === null
      }
      yield* Fiber.join(said)
      const stored = yield* sql<{ readonly id: string }>`select id from messages order by position`
      expect(seen).toEqual(stored.map((message) => message.id))
      expect(seen.length).toBe(27)
    }).pipe(onFreshData)
  )
})

type Step =
  | { readonly _tag: "turn"; readonly of: number }
  | { readonly _tag: "legacy"; readonly of: number; readonly times: ReadonlyArray<number> }
  | { readonly _tag: "import"; readonly times: ReadonlyArray<number> }
  | { readonly _tag: "keys"; readonly size: number }
  | { readonly _tag: "walk"; readonly of: number; readonly limit: number; readonly anew: boolean }

const times = FC.array(FC.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 6 })
const step: FC.Arbitrary<Step> = FC.oneof(
  FC.record({ _tag: FC.constant("turn" as const), of: FC.nat(3) }),
  FC.record({ _tag: FC.constant("legacy" as const), of: FC.nat(3), times }),
  FC.record({ _tag: FC.constant("import" as const), times }),
  FC.record({ _tag: FC.constant("keys" as const), size: FC.integer({ min: 1, max: 9 }) }),
  FC.record({
    _tag: FC.constant("walk" as const),
    of: FC.nat(3),
    limit: FC.integer({ min: 1, max: 5 }),
    anew: FC.boolean()
  })
)

interface ModelMessage {
  readonly id: string
  readonly at: number
}

/** A conversation as callers see it: an order that only grows at its ends. */
interface Model {
  readonly id: ConversationId
  keyed: Array<ModelMessage & { readonly key: number }>
  waiting: Array<ModelMessage>
  /** The walk that is under way: the key after which it goes on, what it has seen, what there was when it began. */
  walk: { after: number | undefined; seen: Array<string>; start: ReadonlyArray<string> } | undefined
}

const older = (a: ModelMessage, b: ModelMessage) => a.at - b.at || (a.id < b.id ? -1 : 1)

const run = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const scope = yield* agent()
    const sql = yield* SqlClient.SqlClient
    const conversations = yield* Conversations
    const legacy = yield* LegacyMessages
    const models: Array<Model> = []
    let names = 0
    const pick = (of: number) => models[of % Math.max(1, models.length)]

    const perform = (step: Step) =>
      Effect.gen(function* () {
        if (step._tag === "import") {
          const text = JSON.stringify({
            id: `c${names++}`,
            messages: step.times.map((second) => ({
              role: "user",
              content: "x",
              createdAt: `2024-05-01T09:30:0${second}Z`
            }))
          })
          expect(yield* imported(scope, text)).toMatchObject({ imported: 1 })
          expect(yield* imported(scope, text)).toMatchObject({ imported: 0, repeated: 1 })
          const known = new Set<string>(models.map(({ id }) => id))
          const made = (yield* all(scope)).rows.find(({ id }) => !known.has(id))
          if (made === undefined) throw new Error("The import made no conversation.")
          const rows = yield* sql<{ readonly id: string; readonly at: number }>`
            select id, extract(epoch from created_at)::float8 as at from messages where conversation_id = ${made.id}`
          models.push({ id: made.id, keyed: [], waiting: [...rows], walk: undefined })
          return
        }
        if (step._tag === "keys") {
          const due = models
            .toSorted((a, b) => (a.id < b.id ? 1 : -1))
            .flatMap((model) =>
              model.waiting.toSorted((a, b) => older(b, a)).map((message) => ({ model, message }))
            )
            .slice(0, step.size)
          expect(yield* legacy.giveKeys(step.size)).toBe(due.length)
          for (const { message, model } of due) {
            const key = Math.min(1, ...model.keyed.map((one) => one.key)) - 1
            model.keyed.unshift({ ...message, key })
            model.waiting = model.waiting.filter(({ id }) => id !== message.id)
          }
          return
        }
        const model = pick(step.of)
        if (model === undefined) return
        if (step._tag === "turn") {
          const before = [...model.waiting.toSorted(older), ...model.keyed]
          const { history, ids } = yield* turn(scope, model.id, "t")
          expect(history.length).toBe(Math.min(60, before.length))
          for (const id of ids) {
            model.keyed.push({ id, at: 0, key: Math.max(0, ...model.keyed.map((one) => one.key)) + 1 })
          }
          return
        }
        if (step._tag === "legacy") {
          for (const second of step.times) {
            const id = yield* newId.message
            const at = `2023-01-01T00:00:0${second}Z`
            yield* sql`
              insert into messages (id, tenant_id, conversation_id, agent_id, role, content, created_at)
              values (${id}, ${scope.tenantId}, ${model.id}, ${scope.agentId}, 'user', 'x', ${at}::timestamptz)`
            model.waiting.push({ id, at: Date.parse(at) / 1_000 })
          }
          return
        }
        if (step.anew || model.walk === undefined) {
          model.walk = { after: undefined, seen: [], start: model.keyed.map(({ id }) => id) }
        }
        const { walk } = model
        const page = yield* Effect.either(
          conversations.messages(scope, model.id, { after: walk.after, limit: step.limit })
        )
        if (model.waiting.length > 0) {
          expect(Either.isLeft(page) && page.left._tag).toBe("PAGINATION_NOT_READY")
          if (walk.after === undefined) model.walk = undefined
          return
        }
        const { rows, next } = Either.getOrThrow(page)
        const ahead = model.keyed.filter(({ key }) => walk.after === undefined || key > walk.after)
        expect(rows.map(({ id }) => id)).toEqual(ahead.slice(0, step.limit).map(({ id }) => id))
        expect(next).toBe(ahead.length > step.limit ? (ahead[step.limit - 1]?.key ?? null) : null)
        walk.seen.push(...rows.map(({ id }) => id))
        walk.after = next ?? undefined
        if (next !== null) return
        expect(new Set(walk.seen).size).toBe(walk.seen.length)
        expect(walk.seen).toEqual(expect.arrayContaining([...walk.start]))
        model.walk = undefined
      })

    yield* Effect.forEach(steps, perform)
    yield* Effect.flatMap(LegacyKeys, ({ run }) => run)
    for (const model of models) {
      const { messages } = yield* conversations.get(scope, model.id)
      const told = Chunk.toReadonlyArray(yield* Stream.runCollect(messages)).map(({ id }) => id)
      const expected = [...model.waiting.toSorted(older), ...model.keyed].map(({ id }) => id)
      expect(told).toEqual(expected)
    }
  })

eachEngineLive("During imports, ordering and turns", (it) => {
  it.effect(
    "pages follow the order of the conversation, without lost or repeated messages",
    () =>
      Effect.gen(function* () {
        const runtime = yield* Effect.runtime<
          SqlClient.SqlClient | Conversations | ImportConversations | LegacyKeys | LegacyMessages | Turns
        >()
        const runPromise = Runtime.runPromise(runtime)
        yield* Effect.promise(() =>
          FC.assert(
            FC.asyncProperty(FC.array(step, { minLength: 5, maxLength: 40 }), (steps) =>
              runPromise(
                Effect.zipRight(
                  reset,
                  run([{ _tag: "import", times: [1] }, { _tag: "import", times: [1, 1, 2] }, ...steps])
                )
              )
            ),
            { numRuns: 50 }
          )
        )
      }).pipe(onFreshData),
    120_000
  )
})
