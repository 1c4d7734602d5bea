import { expect, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, type Answer, call, type Call, signedIn } from "./AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const outcome = ({ error, status }: Answer) => [status, error?.code]

const begun = Effect.gen(function* () {
  yield* reset
  const { cookie, tenantId } = yield* signedIn("ada@example.com")
  const made = yield* call("POST", "/api/agents", { cookie, body: { name: "Helper" } })
  const id: string = made.data.agent.id
  const cases = `/api/agents/${id}/cases`
  const ask = (method: string, path: string, options: Call = {}) => call(method, path, { cookie, ...options })
  return { ask, cases, cookie, id, tenantId }
})

const texts = (answer: Answer) =>
  answer.data.cases.map(({ question }: { readonly question: string }) => question)

interface Told {
  readonly status?: "complete" | "failed"
  readonly citations?: ReadonlyArray<object>
  readonly rating?: 1 | -1
  readonly comment?: string
  readonly human?: string
}

/** A turn of the agent's that has ended, as it is stored. */
const turn = (agentId: string, tenantId: string, told: Told = {}) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { citations = [], comment = null, human = null, rating = null, status = "complete" } = told
    yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${tenantId})`
    yield* sql`
      insert into conversations (id, tenant_id, agent_id, end_user_id, channel, message_count)
      values ('cnv_1', ${tenantId}, ${agentId}, 'usr_1', 'api', 3)`
    yield* sql`
      insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, author, citations)
      values ('msg_1', ${tenantId}, 'cnv_1', ${agentId}, 1, 'user', 'How do I return it?', null, '[]'),
        ('msg_2', ${tenantId}, 'cnv_1', ${agentId}, 2, 'assistant', 'Like this [1].', 'agent', ${JSON.stringify(citations)}::jsonb)`
    if (human !== null) {
      yield* sql`
        insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, author)
        values ('msg_3', ${tenantId}, 'cnv_1', ${agentId}, 3, 'assistant', ${human}, 'human')`
    }
    if (rating !== null) {
      yield* sql`
        insert into message_feedback (tenant_id, message_id, conversation_id, rating, comment)
        values (${tenantId}, 'msg_2', 'cnv_1', ${rating}, ${comment})`
    }
    yield* sql`
      insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message,
        message_id, period_start, status, rating)
      values ('run_1', ${tenantId}, ${agentId}, 'cnv_1', 1, 'instance', 'msg_1', 'How do I return it?', 'msg_2', now(),
        ${status}, ${rating})`
  })

const citation = (index: number, sourceName: string, url: string) => ({
  index,
  sourceId: "src_1",
  sourceName,
  documentId: "doc_1",
  chunkId: "chk_1",
  title: "Returns",
  url,
  text: "Send it back.",
  score: 0.9
})

const cited = [
  citation(1, "Shop", "https://shop.example/returns"),
  citation(2, "Shop", "https://shop.example/returns"),
  citation(3, "Handbook", "text:")
]

layer(Server, { excludeTestServices: true })("Test cases of an agent", (it) => {
  it.effect("are created, listed page by page, replaced and deleted, and this is audited", () =>
    Effect.gen(function* () {
      const { ask, cases, cookie, id } = yield* begun
      const first = yield* ask("POST", cases, {
        body: {
          question: " How? ",
          expectSources: ["guide.md"],
          expectFacts: ["npm start"],
          note: "Often asked."
        }
      })
      expect(first.status).toBe(201)
      expect(first.data.case).toEqual({
        id: expect.stringMatching(/^tcs_/),
        agentId: id,
        question: "How?",
        expectSources: ["guide.md"],
        expectFacts: ["npm start"],
        expectRefusal: null,
        expectGrounding: null,
        responseSchema: null,
        criterion: null,
        note: "Often asked.",
        origin: "written",
        runId: null,
        createdAt: expect.any(String),
        updatedAt: expect.any(String)
      })
      yield* ask("POST", cases, { body: { question: "Who?", expectRefusal: true } })
      const page = yield* ask("GET", `${cases}?limit=1`)
      expect(texts(page)).toEqual(["How?"])
      const rest = yield* ask("GET", `${cases}?limit=1&cursor=${page.data.nextCursor}`)
      expect([texts(rest), rest.data.nextCursor]).toEqual([["Who?"], null])
      const one = `/api/cases/${first.data.case.id}`
      const schema = { type: "object", properties: { why: { type: "string" }, a: { type: "integer" } } }
      const body = { question: "How so?", expectGrounding: true, responseSchema: schema }
      const changed = yield* ask("PUT", one, { body })
      expect(changed.text).toContain(JSON.stringify(schema))
      expect(changed.data.case).toMatchObject({
        question: "How so?",
        expectSources: [],
        expectGrounding: true,
        responseSchema: schema,
        note: null
      })
      // What was read can be written.
      const { updatedAt: _, ...read } = changed.data.case
      expect((yield* ask("PUT", one, { body: changed.data.case })).data.case).toMatchObject(read)
      expect((yield* ask("DELETE", one)).data).toEqual({ id: first.data.case.id, deleted: true })
      expect(outcome(yield* ask("DELETE", one))).toEqual([404, "NOT_FOUND"])
      expect(outcome(yield* ask("PUT", one, { body: { question: "?" } }))).toEqual([404, "NOT_FOUND"])
      const { entries } = (yield* call("GET", "/api/audit", { cookie })).data
      const deeds = entries.map(({ action }: { readonly action: string }) => action)
      expect(deeds.filter((deed: string) => deed.startsWith("test_case."))).toEqual([
        "test_case.delete",
        "test_case.update",
        "test_case.update",
        "test_case.create",
        "test_case.create"
      ])
    })
  )

  it.effect("are refused if they are empty, contradict themselves or belong to another tenant", () =>
    Effect.gen(function* () {
      const { ask, cases } = yield* begun
      const refused = [
        {},
        { question: "  " },
        { question: "How?", expectRefusal: true, expectSources: ["guide.md"] },
        { question: "How?", expectRefusal: true, expectGrounding: true },
        { question: "How?", responseSchema: { type: "string" } },
        { question: "How?", responseSchema: { type: "object", $ref: "#/$defs/a" } },
        { question: "How?", expectFacts: "one" }
      ]
      for (const body of refused) {
        expect(outcome(yield* ask("POST", cases, { body }))).toEqual([400, "VALIDATION_ERROR"])
      }
      const made = yield* ask("POST", cases, { body: { question: "How?" } })
      const stranger = yield* signedIn("eve@example.com")
      const other = { cookie: stranger.cookie }
      const one = `/api/cases/${made.data.case.id}`
      expect(outcome(yield* call("GET", cases, other))).toEqual([404, "NOT_FOUND"])
      expect(outcome(yield* call("GET", `${cases}/export`, other))).toEqual([404, "NOT_FOUND"])
      expect(outcome(yield* call("POST", cases, { ...other, body: { question: "How?" } }))).toEqual([
        404,
        "NOT_FOUND"
      ])
      expect(outcome(yield* call("PUT", one, { ...other, body: { question: "Mine?" } }))).toEqual([
        404,
        "NOT_FOUND"
      ])
      expect(outcome(yield* call("DELETE", one, other))).toEqual([404, "NOT_FOUND"])
      expect(texts(yield* ask("GET", cases))).toEqual(["How?"])
    })
  )

  it.effect("are imported from a file completely or not at all, and exported as lines for spoke eval", () =>
    Effect.gen(function* () {
      const { ask, cases } = yield* begun
      const csv =
        'question,expectSources,expectRefusal,expectGrounding,note\n"How, then?",guide.md | Docs,,true,Why\nWho?,,true,,\n'
      const csvMade = yield* ask("POST", `${cases}/import`, { body: { format: "csv", text: csv } })
      expect([csvMade.status, csvMade.data]).toEqual([201, { imported: 2 }])
      const lines =
        '{"question":"How, then?","expectSources":["guide.md","Docs"],"expectGrounding":true,"note":"Why"}\n{"question":"Who?","expectRefusal":true}\n'
      const exported = yield* ask("GET", `${cases}/export`)
      expect(exported.text).toBe(lines)
      const again = yield* ask("POST", `${cases}/import`, { body: { format: "jsonl", text: lines } })
      expect(again.data).toEqual({ imported: 2 })
      expect((yield* ask("GET", `${cases}/export`)).text).toBe(lines + lines)
      const broken = yield* ask("POST", `${cases}/import`, {
        body: { format: "jsonl", text: '{"question":"Fine?"}\n{"question":1}\n' }
      })
      expect(outcome(broken)).toEqual([400, "VALIDATION_ERROR"])
      expect(JSON.stringify(broken.error)).toContain("line 2")
      const tooMany = Array.from({ length: 1_997 }, (_, place) => `q${place}`).join("\n")
      const full = yield* ask("POST", `${cases}/import`, {
        body: { format: "csv", text: `question\n${tooMany}` }
      })
      expect(outcome(full)).toEqual([409, "CONFLICT"])
      expect((yield* ask("GET", cases)).data.cases).toHaveLength(4)
    })
  )

  it.effect("are made from a turn: its question and the sources that its reply cites", () =>
    Effect.gen(function* () {
      const { ask, cases, id, tenantId } = yield* begun
      yield* turn(id, tenantId, { citations: cited })
      const made = yield* ask("POST", `${cases}/from-run`, { body: { runId: "run_1" } })
      expect(made.status).toBe(201)
      expect(made.data.case).toMatchObject({
        question: "How do I return it?",
        expectSources: ["https://shop.example/returns", "Handbook"],
        expectFacts: [],
        origin: "run",
        runId: "run_1"
      })
      expect(outcome(yield* ask("POST", `${cases}/from-run`, { body: { runId: "run_2" } }))).toEqual([
        404,
        "NOT_FOUND"
      ])
      // What a person asked goes with the person.
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from end_users where id = 'usr_1'`
      expect(texts(yield* ask("GET", cases))).toEqual([])
    })
  )

  it.effect(
    "of a failed or downrated turn expect none of its citations, and have the comment or the human answer as note",
    () =>
      Effect.gen(function* () {
        const rated = yield* begun
        yield* turn(rated.id, rated.tenantId, { citations: cited, rating: -1, comment: "Wrong shop." })
        const opinion = yield* rated.ask("POST", `${rated.cases}/from-run`, { body: { runId: "run_1" } })
        expect(opinion.data.case).toMatchObject({
          expectSources: [],
          origin: "feedback",
          note: "Wrong shop."
        })
        const answered = yield* begun
        yield* turn(answered.id, answered.tenantId, { status: "failed", human: "Within 14 days." })
        const human = yield* answered.ask("POST", `${answered.cases}/from-run`, { body: { runId: "run_1" } })
        expect(human.data.case).toMatchObject({ expectSources: [], origin: "human", note: "Within 14 days." })
      })
  )
})
