import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { ConversationId, newId, RunId } from "../../../src/domain/Ids.ts"
import { openScope } from "../../../src/domain/knowledge/SourceScope.ts"
import { AgentRunStore } from "../../../src/store/chat/AgentRuns.ts"
import { UnansweredStore } from "../../../src/store/channels/Unanswered.ts"
import { InboundEvents } from "../../../src/store/channels/InboundEvents.ts"
import { RecordedRunStore } from "../../../src/store/chat/RecordedRuns.ts"
import { known, page, stores } from "../../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../../Fixtures.ts"
import { layerHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { Script } from "../chat/TurnHarness.ts"
import { channelOf, inboundLayer, message, receive } from "./InboundHarness.ts"

const knowledge = layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity }).pipe(
  Layer.provideMerge(layerHashing())
)
const process = Layer.mergeAll(
  inboundLayer(undefined, InboundEvents.Default, knowledge),
  RecordedRunStore.Default,
  stores
)

const rows = (query: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Record<string, unknown>>(query))

const limitTo = (channel: string, scope: object) =>
  rows(`update channels set source_scope = '${JSON.stringify(scope)}' where id = '${channel}'`)

/** Names of the pages in the prompt of the answer to a new message. */
const pagesRead = Effect.gen(function* () {
  yield* receive(yield* message({ text: "How is a backup made?" }))
  const { requests } = yield* Script
  const last = (yield* Ref.get(requests)).at(-1)
  const found = JSON.stringify(last?.prompt.content.at(-1)).matchAll(/page-\w+/gu)
  return [...new Set(Array.from(found, ([name]) => name))].toSorted()
})

/** An open source, and one for the label `staff`. */
const sourcesOf = (agent: AgentScope) =>
  Effect.gen(function* () {
    const open = yield* known(agent, [page("A backup is made by page-open.", "open")], "Open")
    const staff = yield* known(agent, [page("A backup is made by page-staff.", "staff")], "Staff")
    yield* rows(`update sources set labels = '["staff"]' where id = '${staff}'`)
    return { open, staff }
  })

eachEngineLive("An answer on a channel", (it) => {
  it.scoped("uses only the sources that the channel may read at that time, within one conversation", () =>
    Effect.gen(function* () {
      yield* reset
      const agent = yield* Fixtures.agent()
      const { staff } = yield* sourcesOf(agent)
      const channel = yield* channelOf(agent)
      const both = ["page-open", "page-staff"]
      expect(yield* pagesRead).toEqual(both)
      yield* limitTo(channel, { labels: [] })
      expect(yield* pagesRead).toEqual(["page-open"])
      yield* limitTo(channel, { labels: ["staff"] })
      expect(yield* pagesRead).toEqual(both)
      yield* limitTo(channel, { labels: ["staff"], sourceIds: [staff] })
      expect(yield* pagesRead).toEqual(["page-staff"])
      expect(yield* rows("select message_count::int as n from conversations")).toEqual([{ n: 8 }])
    }).pipe(Effect.provide(process))
  )

  it.scoped("follows the account's active configuration, if its agent has that one", () =>
    Effect.gen(function* () {
      yield* reset
      const agent = yield* Fixtures.agent()
      yield* sourcesOf(agent)
      const old = yield* channelOf(agent)
      yield* pagesRead
      yield* rows(`update channels set active = false where id = '${old}'`)
      const next = yield* channelOf(agent)
      yield* limitTo(next, openScope)
      expect(yield* pagesRead).toEqual(["page-open"])
      const agentId = yield* newId.agent
      yield* rows(
        `insert into agents (id, tenant_id, name) values ('${agentId}', '${agent.tenantId}', 'Second')`
      )
      yield* rows(`update channels set agent_id = '${agentId}' where id = '${next}'`)
      expect(yield* pagesRead).toEqual(["page-open", "page-staff"])
    }).pipe(Effect.provide(process))
  )

  it.scoped("uses only sources without labels when the channel was deleted meanwhile", () =>
    Effect.gen(function* () {
      yield* reset
      const agent = yield* Fixtures.agent()
      yield* channelOf(agent)
      yield* receive(yield* message())
      const [row] = yield* rows("select id from conversations")
      const id = ConversationId.make(String(row?.["id"]))
      const unanswered = yield* UnansweredStore
      const now = yield* DateTime.now
      const scope = unanswered
        .hold(agent, id, { characters: 100, fresh: now, replies: now })
        .pipe(Effect.map((held) => held?.sourceScope))
      expect(yield* scope).toBeNull()
      yield* rows("delete from channels")
      expect(yield* scope).toEqual(openScope)
    }).pipe(Effect.provide(process))
  )

  it.scoped("has a trace that a key with the same scope cannot read, like the conversation", () =>
    Effect.gen(function* () {
      yield* reset
      const agent = yield* Fixtures.agent()
      yield* sourcesOf(agent)
      yield* limitTo(yield* channelOf(agent), openScope)
      yield* pagesRead
      const [run] = yield* rows("select id, source_scope from agent_runs")
      const id = RunId.make(String(run?.["id"]))
      expect(run?.["source_scope"]).toEqual(openScope)
      const runs = yield* AgentRunStore
      const recorded = yield* RecordedRunStore
      const page = { after: 0, limit: 10 }
      const tagsUnder = (sourceScope: typeof openScope | null) =>
        Effect.all([
          runs.trace({ ...agent, sourceScope }, id, page),
          runs.status({ ...agent, sourceScope }, id),
          recorded.find({ ...agent, sourceScope }, id)
        ]).pipe(Effect.map((found) => found.map(({ _tag }) => _tag)))
      expect(yield* tagsUnder(null)).toEqual(["Some", "Some", "Some"])
      expect(yield* tagsUnder(openScope)).toEqual(["None", "None", "None"])
    }).pipe(Effect.provide(process))
  )
})
