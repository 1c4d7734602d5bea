/** Failed turns and measures over HTTP, for conversations held over the API. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { ModelError } from "../../../src/capabilities/ModelRuntime.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import type { AgentScope, SessionUser } from "../../../src/domain/accounts/Access.ts"
import type { ChatTurnResult } from "../../../src/domain/chat/ChatTurn.ts"
import type { TenantScope } from "../../../src/domain/accounts/Account.ts"
import { ConversationId, MessageId, TenantId, UserId } from "../../../src/domain/Ids.ts"
import { SessionAuth } from "../../../src/http/Auth.ts"
import { InsightsApi } from "../../../src/http/hosted/conversations/InsightsApi.ts"
import { InsightsHandlers } from "../../../src/http/hosted/conversations/InsightsHandlers.ts"
import { WidgetMessageStore } from "../../../src/store/chat/WidgetMessages.ts"
import { InsightStore } from "../../../src/store/conversations/Insights.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { Handoff } from "../../../src/usecases/conversations/Handoff.ts"
import { Insights } from "../../../src/usecases/conversations/Insights.ts"
import { counterValue } from "../../Counters.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { ownershipLayer } from "../../usecases/channels/InboundHarness.ts"
import { chunk, request, says, Script } from "../../usecases/chat/TurnHarness.ts"
import * as TestServer from "../TestServer.ts"

const current: { user: SessionUser } = {
  user: {
    userId: UserId.make("mbr_1"),
    tenantId: TenantId.make("ten_1"),
    email: "a@b.test",
    role: "viewer",
    session: null
  }
}
const session = Layer.succeed(
  SessionAuth,
  Effect.sync(() => current.user)
)

/** What an embedder has been sent. */
const embedded: Array<string> = []
const hashing = makeHashing()
const embedder = Layer.succeed(Embedder, {
  ...hashing,
  embedAll: (texts) => {
    embedded.push(...texts)
    return hashing.embedAll(texts)
  }
})

const server = TestServer.layer(
  HttpApiBuilder.api(HttpApi.make("spoke").add(InsightsApi)).pipe(
    Layer.provide(InsightsHandlers),
    Layer.provide(session)
  )
).pipe(
  Layer.provideMerge(Insights.Default.pipe(Layer.provide(embedder))),
  Layer.provideMerge(
    Layer.mergeAll(
      InsightStore.Default,
      WidgetMessageStore.Default,
      DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")]),
      ownershipLayer()
    )
  )
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(effect, server))

const as = ({ tenantId }: AgentScope) =>
  Effect.sync(() => {
    current.user = { ...current.user, tenantId }
  })

const get = (path: string) => Effect.flatMap(TestServer.TestServer, (test) => test.call("GET", path))
const data = (path: string) => Effect.map(get(path), (answer) => TestServer.expectData(answer))

/** An agent with one source, which nothing is found of. */
const agent = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  yield* as(scope)
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into sources (id, tenant_id, agent_id, type, name, config)
    values ('src_1', ${scope.tenantId}, ${scope.agentId}, 'FILE', 'Handbook', '{}')`
  return scope
})

type Asking = Effect.Effect.Success<ReturnType<typeof Fixtures.agent>>

const ask = (scope: Asking, message: string, person: string) =>
  Effect.flatMap(ChatTurn, (chat) =>
    chat.complete(scope, request({ message, externalEndUserId: person, includeRealtimeToken: false }))
  )

/** The reply's message of a conversation. */
const rate = ({ conversationId }: Pick<ChatTurnResult, "conversationId">, rating: 1 | -1) =>
  Effect.gen(function* () {
    const id = ConversationId.make(conversationId ?? "")
    const sql = yield* SqlClient.SqlClient
    const [message] = yield* sql<TenantScope & { readonly id: string }>`
      select id, tenant_id as "tenantId" from messages where conversation_id = ${id} and role = 'assistant'`
    const messageId = MessageId.make(message?.id ?? "")
    const scope = { tenantId: TenantId.make(message?.tenantId ?? "") }
    expect(yield* (yield* WidgetMessageStore).rate(scope, id, { messageId, rating })).toBe(true)
  })

const answered = Effect.gen(function* () {
  const { chunks, reply } = yield* Script
  yield* Ref.set(chunks, [chunk(1)])
  yield* Ref.set(reply, says("Fact number 1. [1]"))
})

const notFound = Effect.gen(function* () {
  const { chunks, reply } = yield* Script
  yield* Ref.set(chunks, [])
  yield* Ref.set(reply, says("I found nothing on that."))
})

const broken = Effect.gen(function* () {
  const { reply } = yield* Script
  yield* Ref.set(reply, () =>
    Stream.fail(new ModelError({ reason: "Rejected", message: "no", retryable: false }))
  )
})

const kindsOf = (group: { readonly kinds: unknown }) => group.kinds
const none = { unanswered: 0, thumbsDown: 0, handedOver: 0, stopped: 0, failed: 0 }

/** What the model is asked for names, and names that it gives. */
const namesGroups = (name: string) =>
  Effect.gen(function* () {
    const { reply, requests } = yield* Script
    yield* Ref.set(requests, [])
    yield* Ref.set(reply, says(JSON.stringify({ names: [{ group: 0, name }] })))
    return Effect.map(Ref.get(requests), (all) => all.map(({ prompt }) => JSON.stringify(prompt)))
  })

const named = (groups: ReadonlyArray<{ readonly name: string | null }>) => groups.map(({ name }) => name)

eachEngineLive("A group of failed questions", (it) => {
  it.scoped("is named by the model, once, if several turns are about one subject", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      yield* notFound
      yield* ask(scope, "Where is my invoice?", "ada")
      yield* ask(scope, "where is my invoice", "bob")
      yield* ask(scope, "Do you sell umbrellas?", "bob")
      const asked = yield* namesGroups("  Invoices and\n receipts ")
      const first = yield* data("/api/insights")
      expect(first.groups.map(({ title }: { readonly title: string }) => title)).toContain(
        "Do you sell umbrellas?"
      )
      expect(named(first.groups)).toEqual(["Invoices and receipts", null])
      expect(named((yield* data("/api/insights")).groups)).toEqual(["Invoices and receipts", null])
      const [prompt, ...others] = yield* asked
      expect(others).toEqual([])
      expect(prompt).toContain("invoice")
      expect(prompt).not.toContain("umbrellas")
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select kind, calls::int as calls from other_model_usage`).toEqual([
        { kind: "name", calls: 1 }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("is named without showing the model what an agent masks", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const sql = yield* SqlClient.SqlClient
      yield* notFound
      yield* ask(scope, "Where is the parcel for canary@mail.example?", "ada")
      yield* ask(scope, "where is the parcel for canary@mail.example", "bob")
      const masking = { kinds: ["email"], patterns: [], sources: false, tools: [] }
      yield* sql`update agents set masking = ${JSON.stringify(masking)}::jsonb where id = ${scope.agentId}`
      const asked = yield* namesGroups("Parcels")
      expect(named((yield* data("/api/insights")).groups)).toEqual(["Parcels"])
      const [prompt] = yield* asked
      expect(prompt).toContain("Where is the parcel for [email-1]?")
      expect(prompt).not.toContain("canary")
    }).pipe(onFreshData)
  )

  it.scoped(
    "is named without showing the model a part of a masked value, at the end of a long question",
    () =>
      Effect.gen(function* () {
        const scope = yield* agent
        const sql = yield* SqlClient.SqlClient
        yield* notFound
        const said = `${"Where is my parcel? ".repeat(14)}My card: 4111 1111 1111 1111, please look`
        expect(said.indexOf("4111")).toBeLessThan(300)
        expect(said.indexOf("please")).toBeGreaterThan(300)
        yield* ask(scope, said, "ada")
        yield* ask(scope, said.toLowerCase(), "bob")
        const masking = { kinds: ["card"], patterns: [], sources: false, tools: [] }
        yield* sql`update agents set masking = ${JSON.stringify(masking)}::jsonb where id = ${scope.agentId}`
        const asked = yield* namesGroups("Parcels")
        expect(named((yield* data("/api/insights")).groups)).toEqual(["Parcels"])
        const [prompt] = yield* asked
        expect(prompt).toContain("[card-1]")
        expect(prompt).not.toContain("4111")
        expect(prompt).not.toContain("look")
      }).pipe(onFreshData)
  )

  it.scoped("has no names if the model gives none, and does not ask for them again at once", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      yield* notFound
      yield* ask(scope, "Where is my invoice?", "ada")
      yield* ask(scope, "where is my invoice", "bob")
      const asked = yield* namesGroups("unused")
      yield* broken
      expect(named((yield* data("/api/insights")).groups)).toEqual([null])
      expect(named((yield* data("/api/insights")).groups)).toEqual([null])
      expect(yield* asked).toHaveLength(1)
    }).pipe(onFreshData)
  )

  it.scoped("has no names, and calls no model for them, once a budget is spent", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const sql = yield* SqlClient.SqlClient
      yield* notFound
      yield* ask(scope, "Where is my invoice?", "ada")
      yield* ask(scope, "where is my invoice", "bob")
      yield* sql`update subscriptions set has_budgets = true where tenant_id = ${scope.tenantId}`
      yield* sql`insert into budgets (tenant_id, id, period, limit_nano) values (${scope.tenantId}, 'bud_1', 'month', 1)`
      yield* sql`
        insert into budget_periods (tenant_id, budget_id, period_start, spent_nano)
        select ${scope.tenantId}, 'bud_1', date_trunc('month', now(), 'UTC'), 1`
      const asked = yield* namesGroups("Invoices")
      const { groups } = yield* data("/api/insights")
      expect(groups).toHaveLength(1)
      expect(named(groups)).toEqual([null])
      expect(yield* asked).toEqual([])
      expect(yield* sql`select kind from other_model_usage`).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped(
    "is made without showing the embedder a part of a masked value, where a question is truncated",
    () =>
      Effect.gen(function* () {
        const scope = yield* agent
        const sql = yield* SqlClient.SqlClient
        yield* notFound
        yield* ask(scope, `${"x ".repeat(492)}My card: 4111 1111 1111 1111, please`, "ada")
        const masking = { kinds: ["card"], patterns: [], sources: false, tools: [] }
        yield* sql`update agents set masking = ${JSON.stringify(masking)}::jsonb where id = ${scope.agentId}`
        embedded.length = 0
        yield* data("/api/insights")
        expect(embedded).toEqual([`${"x ".repeat(492)}My card:`])
      }).pipe(onFreshData)
  )

  it.scoped("is made without showing the embedder what an agent masks", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const sql = yield* SqlClient.SqlClient
      yield* notFound
      yield* ask(scope, "Where is the parcel for canary@mail.example?", "ada")
      const masking = { kinds: ["email"], patterns: [], sources: false, tools: [] }
      yield* sql`update agents set masking = ${JSON.stringify(masking)}::jsonb where id = ${scope.agentId}`
      embedded.length = 0
      const { groups } = yield* data("/api/insights")
      expect(groups[0].examples[0].question).toBe("Where is the parcel for canary@mail.example?")
      expect(embedded).toEqual(["Where is the parcel for ?"])
    }).pipe(onFreshData)
  )

  it.scoped("has counts, kinds, people, searched sources and examples", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      yield* notFound
      for (const [message, person] of [
        ["Where can I download my invoice?", "ada"],
        ["where can I download my invoice", "bob"],
        ["How can I download an invoice?", "ada"]
      ] as const)
        yield* ask(scope, message, person)
      yield* broken
      yield* Effect.ignore(ask(scope, "Do you ship to Norway?", "eve"))
      yield* answered
      yield* ask(scope, "What does the parking garage cost?", "eve")
      const page = yield* data("/api/insights")
      expect(page).toMatchObject({ turns: 4, isCut: false, withoutVector: 0, nextCursor: null })
      const [invoices, ships, ...others] = page.groups
      expect(others).toEqual([])
      expect(invoices).toMatchObject({
        count: 3,
        people: 2,
        kinds: { ...none, unanswered: 3 },
        trend: { earlier: 0, later: 3 },
        sources: [{ id: "src_1", name: "Handbook", times: 3 }]
      })
      expect(invoices.title).toMatch(/invoice/u)
      expect(invoices.examples.map(({ question }: { question: string }) => question)).toEqual([
        "How can I download an invoice?",
        "where can I download my invoice",
        "Where can I download my invoice?"
      ])
      expect(ships).toMatchObject({
        count: 1,
        kinds: { ...none, failed: 1 },
        title: "Do you ship to Norway?"
      })
      expect(ships.examples[0]).toMatchObject({ kind: "failed", agentId: scope.agentId })
      expect(yield* data("/api/insights")).toEqual({
        ...page,
        from: expect.any(String),
        to: expect.any(String)
      })
    }).pipe(onFreshData)
  )

  it.scoped(
    "contains turns that were rated down, handed over or not supported, and no turn that was rated up later",
    () =>
      Effect.gen(function* () {
        const scope = yield* agent
        yield* answered
        const rated = yield* ask(scope, "Which tyres fit my bicycle?", "ada")
        const asked = yield* ask(scope, "Please open the garage door", "bob")
        const { reply } = yield* Script
        yield* Ref.set(reply, says("Fact number 77 is not what it was. [1]"))
        yield* ask(scope, "How old is the castle?", "eve")
        yield* rate(rated, -1)
        const handoff = yield* Handoff
        if (asked.conversationId !== undefined)
          yield* handoff.request(scope, asked.conversationId, {
            by: "person",
            reason: "The customer asked for it."
          })
        const { groups } = yield* data("/api/insights?limit=10")
        expect(
          new Map(groups.map((group: { title: string; kinds: unknown }) => [group.title, kindsOf(group)]))
        ).toEqual(
          new Map([
            ["How old is the castle?", { ...none, unanswered: 1 }],
            ["Please open the garage door", { ...none, handedOver: 1 }],
            ["Which tyres fit my bicycle?", { ...none, thumbsDown: 1 }]
          ])
        )
        yield* rate(rated, 1)
        expect((yield* data("/api/insights")).groups).toHaveLength(2)
      }).pipe(onFreshData)
  )

  it.scoped("is listed once over all pages, and a cursor is valid only for its own list", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      yield* notFound
      const questions = ["Do you sell umbrellas?", "Opening hours on Sunday", "Wifi password please"]
      for (const question of questions) yield* ask(scope, question, "ada")
      const titles: Array<string> = []
      let cursor: string | null = null
      do {
        const path: string = `/api/insights?limit=1${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
        const page = yield* data(path)
        titles.push(...page.groups.map(({ title }: { title: string }) => title))
        cursor = page.nextCursor
        if (cursor !== null)
          TestServer.expectError(
            yield* get(`/api/insights?agentId=${scope.agentId}&cursor=${encodeURIComponent(cursor)}`),
            400,
            "VALIDATION_ERROR"
          )
      } while (cursor !== null)
      expect(titles.toSorted()).toEqual(questions)
    }).pipe(onFreshData)
  )

  it.scoped("belongs to the tenant, the requested period and the requested agent", () =>
    Effect.gen(function* () {
      const other = yield* Fixtures.agent()
      const scope = yield* agent
      yield* notFound
      yield* ask(scope, "Do you sell umbrellas?", "ada")
      expect((yield* data(`/api/insights?agentId=${scope.agentId}`)).groups).toHaveLength(1)
      expect((yield* data("/api/insights?to=2024-01-01T00:00:00Z")).groups).toEqual([])
      yield* as(other)
      expect((yield* data("/api/insights")).groups).toEqual([])
      expect((yield* data("/api/measures")).total.turns).toBe(0)
      for (const route of ["insights", "measures"])
        TestServer.expectError(yield* get(`/api/${route}?agentId=${scope.agentId}`), 404, "NOT_FOUND")
      for (const time of [
        "from=2024-02-01T00:00:00Z&to=2024-01-01T00:00:00Z",
        "from=2020-01-01T00:00:00Z&to=2024-01-01T00:00:00Z",
        "from=yesterday"
      ])
        TestServer.expectError(yield* get(`/api/insights?${time}`), 400, "VALIDATION_ERROR")
    }).pipe(onFreshData)
  )

  it.scoped("contains nothing of a turn that stores nothing, or of an erased end user", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const sql = yield* SqlClient.SqlClient
      yield* notFound
      yield* (yield* ChatTurn).complete(scope, request({ message: "Is this kept?", persist: false }))
      expect((yield* data("/api/insights")).groups).toEqual([])
      yield* ask(scope, "Do you sell umbrellas?", "ada")
      yield* data("/api/insights")
      expect(yield* sql`select 1 from question_vectors`).toHaveLength(1)
      yield* sql`delete from end_users where tenant_id = ${scope.tenantId}`
      expect((yield* data("/api/insights")).groups).toEqual([])
      expect(yield* sql`select 1 from question_vectors`).toEqual([])
    }).pipe(onFreshData)
  )
})

eachEngineLive("The measures", (it) => {
  it.scoped("count every turn once, by day, agent and channel, and a repeated question is not resolved", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      yield* answered
      const liked = yield* ask(scope, "What is fact one?", "ada")
      yield* ask(scope, "What is fact two?", "bob")
      yield* ask(scope, "  what is  FACT two?", "bob")
      const disliked = yield* ask(scope, "What is fact three?", "eve")
      yield* rate(liked, 1)
      yield* rate(disliked, -1)
      yield* notFound
      yield* ask(scope, "What is fact nine?", "eve")
      yield* broken
      yield* Effect.ignore(ask(scope, "What is fact ten?", "eve"))
      const report = yield* data("/api/measures")
      expect(report).toMatchObject({
        by: "day",
        isCut: false,
        total: {
          turns: 6,
          people: 3,
          answered: 4,
          refused: 1,
          handedOver: 0,
          stopped: 0,
          failed: 1,
          repeated: 1,
          rated: { up: 1, down: 1 },
          satisfaction: 0.5,
          resolutionRate: 2 / 6
        }
      })
      expect(report.total.timeToFirstText.p95).toBeGreaterThanOrEqual(report.total.timeToFirstText.median)
      expect(report.total.timeToSettle.median).toBeGreaterThanOrEqual(0)
      expect(report.total.tokens.input).toBe(55)
      const turnsOf = (rows: ReadonlyArray<{ readonly turns: number }>) =>
        rows.reduce((sum, { turns }) => sum + turns, 0)
      expect(turnsOf(report.rows)).toBe(6)
      const byAgent = yield* data(`/api/measures?by=agent&agentId=${scope.agentId}`)
      expect(byAgent.rows).toMatchObject([{ key: scope.agentId, name: "Test agent", turns: 6 }])
      const byChannel = yield* data("/api/measures?by=channel")
      expect(byChannel.rows).toMatchObject([{ key: "api", name: null, turns: 6 }])
      yield* answered
      yield* ask(scope, "Wo ist der Turm?", "ada")
      yield* ask(scope, "4711", "ada")
      const byLanguage = yield* data("/api/measures?by=language")
      expect(
        byLanguage.rows.map(({ key, turns }: { readonly key: string; readonly turns: number }) => [
          key,
          turns
        ])
      ).toEqual([
        ["de", 1],
        ["en", 6],
        ["unknown", 1]
      ])
      const byVersion = yield* data(`/api/measures?by=version&agentId=${scope.agentId}`)
      expect(byVersion.rows).toMatchObject([{ key: "1", name: null, turns: 8, answered: 6 }])
      TestServer.expectError(yield* get("/api/measures?by=version"), 400, "VALIDATION_ERROR")
    }).pipe(onFreshData)
  )

  it.scoped("sum the cost of the turns, as the usage does", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const sql = yield* SqlClient.SqlClient
      const cost = Effect.map(data("/api/measures"), (report) => report.total.cost)
      expect(yield* cost).toEqual({ nanoUsd: 0, unpricedCalls: 0 })
      yield* answered
      yield* ask(scope, "What is fact one?", "ada")
      yield* ask(scope, "What is fact two?", "ada")
      yield* ask(scope, "What is fact three?", "ada")
      yield* broken
      yield* Effect.ignore(ask(scope, "What is fact ten?", "ada"))
      const price = (question: string, nanoUsd: number | null, unpriced: number | null) => sql`
        update agent_runs set cost_nano = ${nanoUsd}::bigint, unpriced_calls = ${unpriced}::int
        where tenant_id = ${scope.tenantId} and user_message = ${question}`
      // A turn that is older than costs, one of a model without a price, one that was refused before the model.
      yield* price("What is fact one?", null, null)
      yield* price("What is fact two?", null, 2)
      yield* price("What is fact three?", null, 1)
      yield* price("What is fact ten?", 0, 0)
      expect(yield* cost).toEqual({ nanoUsd: null, unpricedCalls: 4 })
      yield* price("What is fact three?", 20_100, 0)
      yield* price("What is fact ten?", 400, 1)
      expect(yield* cost).toEqual({ nanoUsd: 20_500, unpricedCalls: 4 })
      expect((yield* data("/api/measures")).rows).toMatchObject([
        { cost: { nanoUsd: 20_500, unpricedCalls: 4 } }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("count the checked citations of the replies by how far the sources support them", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const sql = yield* SqlClient.SqlClient
      const grounding = Effect.map(data("/api/measures"), (report) => report.total.grounding)
      expect(yield* grounding).toEqual({ yes: 0, partly: 0, no: 0, share: null })
      const metrics = Effect.all([
        counterValue("spoke_turn_citations_total", "yes"),
        counterValue("spoke_turn_citations_total", "partly"),
        counterValue("spoke_turn_citations_total", "no"),
        counterValue("spoke_turns_refused_total")
      ])
      const before = yield* metrics
      yield* answered
      yield* ask(scope, "What is fact one?", "ada")
      expect(yield* grounding).toEqual({ yes: 1, partly: 0, no: 0, share: 1 })
      const { reply } = yield* Script
      yield* Ref.set(reply, says("Fact number 77 is not what it was. [1]"))
      yield* ask(scope, "How old is the castle?", "ada")
      expect(yield* grounding).toEqual({ yes: 1, partly: 0, no: 1, share: 0.5 })
      yield* notFound
      yield* ask(scope, "What is fact nine?", "bob")
      const added = (yield* metrics).map((count, place) => count - (before[place] ?? 0))
      // The unsupported reply, and the question of which nothing was found.
      expect(added).toEqual([1, 0, 1, 2])
      yield* sql`
        update messages set citations = (
          select jsonb_agg(citations -> 0 || given) from unnest(array[
            '{"supported": "yes"}', '{"supported": "partly"}', '{"supported": null}', '{}'
          ]::jsonb[]) given
        ) where tenant_id = ${scope.tenantId} and citations @> '[{"supported": "yes"}]'`
      expect(yield* grounding).toEqual({ yes: 2, partly: 1, no: 1, share: 0.5 })
    }).pipe(onFreshData)
  )

  it.scoped("list the versions in order, and report if there are more than a report includes", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const sql = yield* SqlClient.SqlClient
      yield* answered
      yield* ask(scope, "What is fact one?", "ada")
      const addVersions = (from: number, to: number) => sql`
        insert into agent_runs
        select (jsonb_populate_record(r, jsonb_build_object(
          'id', r.id || n, 'ticket', n, 'agent_version', n, 'message_id', null, 'user_message_id', r.user_message_id || n
        ))).*
        from agent_runs r, generate_series(${from}::int, ${to}::int) n
        where r.tenant_id = ${scope.tenantId} and r.agent_version = 1`
      const byVersion = data(`/api/measures?by=version&agentId=${scope.agentId}`)
      yield* addVersions(2, 500)
      const whole = yield* byVersion
      expect(whole).toMatchObject({ isCut: false, total: { turns: 500 } })
      const versions = Array.from({ length: 500 }, (_, place) => `${place + 1}`)
      const keysOf = (report: { readonly rows: ReadonlyArray<{ readonly key: string }> }) =>
        report.rows.map(({ key }) => key)
      expect(keysOf(whole)).toEqual(versions)
      yield* addVersions(501, 501)
      const cut = yield* byVersion
      expect(cut).toMatchObject({ isCut: true, total: { turns: 501 } })
      expect(keysOf(cut)).toEqual(versions)
    }).pipe(onFreshData)
  )
})
