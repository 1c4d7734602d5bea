import * as SqlClient from "@effect/sql/SqlClient"
import { describe, expect, it as plain } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { newId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { type Heading, StartStore } from "../../../src/store/agents/Starts.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { suggestedQuestions } from "../../../src/usecases/agents/SuggestedQuestions.ts"
import { Starts } from "../../../src/usecases/agents/Starts.ts"
import { SourceScopes } from "../../../src/usecases/knowledge/SourceScopes.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const live = Starts.Default.pipe(
  Layer.provideMerge(SourceScopes.Default),
  Layer.provideMerge(Layer.mergeAll(AgentStore.Default, StartStore.Default, SourceStore.Default))
)

const heading = (heading: string, title = "Page", english = true, beginning = ""): Heading => ({
  heading,
  title,
  english,
  beginning
})

/** A source that was read, with one document and a chunk for each heading. */
const known = (
  scope: { readonly tenantId: string; readonly agentId: string },
  headings: ReadonlyArray<string>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const source = yield* newId.source
    const document = yield* newId.document
    yield* sql`
      insert into sources (id, tenant_id, agent_id, type, name, status, config, live_generation)
      values (${source}, ${scope.tenantId}, ${scope.agentId}, 'URL', 'Site', 'READY', '{}', 7)`
    yield* sql`
      insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
      values (${document}, ${scope.tenantId}, ${scope.agentId}, ${source}, 7, 'https://shop.example/', 'Shop', 'x'),
        (${`${document}old`}, ${scope.tenantId}, ${scope.agentId}, ${source}, 6, 'https://shop.example/', 'Shop', 'x')`
    for (const [ordinal, text] of headings.entries()) {
      yield* sql`
        insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, heading, content, content_hash, tsv, length)
        values (${yield* newId.chunk}, ${scope.tenantId}, ${scope.agentId}, ${source}, 7, ${document}, ${ordinal}, ${text}, 'Some words.', 'x', '', 2)`
    }
  })

eachEngineLive("The guided start", (it) => {
  it.effect("is derived from the newest agent other than the sample", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const starts = yield* Starts
      const scope = yield* Fixtures.agent()
      yield* sql`
        insert into sources (id, tenant_id, agent_id, type, name, config)
        values ('src_1', ${scope.tenantId}, ${scope.agentId}, 'BULK_UPLOAD', 'Spoke documentation', '{}')`
      expect(yield* starts.get(scope, undefined)).toMatchObject({
        agent: null,
        sample: { id: scope.agentId },
        sources: 0,
        finished: false
      })
      expect(yield* starts.get(scope, scope.agentId)).toMatchObject({
        agent: { id: scope.agentId },
        sources: 1
      })
      const agentId = yield* newId.agent
      yield* sql`insert into agents (id, tenant_id, name) values (${agentId}, ${scope.tenantId}, 'Shop')`
      const own = { tenantId: scope.tenantId, agentId }
      expect(yield* starts.get(scope, undefined)).toMatchObject({
        agent: { name: "Shop" },
        sources: 0,
        documents: 0
      })
      yield* known(own, ["Opening hours"])
      expect(yield* starts.get(scope, undefined)).toMatchObject({
        sources: 1,
        documents: 1,
        tried: false,
        widget: false
      })
      yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${own.tenantId})`
      yield* sql`
        insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
        values ('cnv_1', ${own.tenantId}, ${agentId}, 'usr_1', 'test')`
      yield* sql`
        insert into api_keys (id, tenant_id, agent_id, name, prefix, secret_hash, scope, permissions)
        values ('key_w', ${own.tenantId}, ${agentId}, 'Widget', 'wgt_', 'x', 'agent', '{chat}')`
      yield* sql`
        insert into agent_widgets (agent_id, tenant_id, public_id, key_id, look)
        values (${agentId}, ${own.tenantId}, 'wgt_x', 'key_w', '{}')`
      expect(yield* starts.get(scope, undefined)).toMatchObject({ tried: true, widget: true, finished: true })
    }).pipe(Effect.provide(live))
  )

  it.effect("is dismissed and resumed for one tenant", () =>
    Effect.gen(function* () {
      yield* reset
      const starts = yield* Starts
      const [scope, other] = [yield* Fixtures.agent(), yield* Fixtures.agent()]
      yield* starts.dismiss(scope, true)
      expect((yield* starts.get(scope, undefined)).dismissed).toBe(true)
      expect((yield* starts.get(other, undefined)).dismissed).toBe(false)
      yield* starts.dismiss(scope, false)
      expect((yield* starts.get(scope, undefined)).dismissed).toBe(false)
      expect(String(yield* Effect.flip(starts.get(other, scope.agentId)))).toContain("no such agent")
    }).pipe(Effect.provide(live))
  )

  it.effect(
    "proposes questions that the agent's live content answers, without other tenants and labelled sources",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const starts = yield* Starts
        const [scope, other] = [yield* Fixtures.agent(), yield* Fixtures.agent()]
        expect(yield* starts.questions(scope, scope.agentId)).toEqual([])
        yield* known(other, ["Who are we?"])
        yield* known(scope, ["Opening hours", "Visit > How to get here", "Do you ship abroad?"])
        expect(yield* starts.questions(scope, scope.agentId)).toEqual([
          "Do you ship abroad?",
          "How do I get here?",
          "What should I know about “Opening hours”?"
        ])
        yield* sql`update sources set labels = '["staff"]' where agent_id = ${scope.agentId}`
        expect(yield* starts.questions(scope, scope.agentId)).toEqual([])
        expect(String(yield* Effect.flip(starts.questions(other, scope.agentId)))).toContain("no such agent")
      }).pipe(Effect.provide(live))
  )
})

describe("Questions of headings", () => {
  const one = (text: string, english = true, beginning = "") =>
    suggestedQuestions([heading(text, "", english, beginning)])[0]

  plain("are sentences of English content", () => {
    expect(one("Add a source")).toBe("How do I add a source?")
    expect(one("2.1 How to return goods:")).toBe("How do I return goods?")
    expect(one("Warranty")).toBe("What should I know about “Warranty”?")
    expect(one("VAT numbers")).toBe("What should I know about “VAT numbers”?")
    expect(one("**Is it free?**")).toBe("Is it free?")
  })

  plain("quote an English heading that is not an instruction, with any grammar", () => {
    const headings = [
      "Workshop",
      "Opening hours",
      "Our team",
      "Opening an account",
      "Conditions of a loan",
      "Order status",
      "Return policy",
      "Test results",
      "Install guide",
      "Where we are",
      "How to tell us what you need",
      "Pay as you go"
    ]
    expect(headings.map((text) => one(text))).toEqual(
      headings.map((text) => `What should I know about “${text}”?`)
    )
  })

  plain("ask for instructions as a visitor does", () => {
    const asked = {
      "Return an order": "How do I return an order?",
      "Sign in with a passkey": "How do I sign in with a passkey?",
      "Contact us": "How do I contact you?",
      "How to find our workshop": "How do I find your workshop?",
      "Reset your password": "How do I reset my password?",
      "Install Spoke": "How do I install Spoke?",
      "Write a guide": "How do I write a guide?"
    }
    expect(Object.keys(asked).map((text) => one(text))).toEqual(Object.values(asked))
  })

  plain("are sentences of German content", () => {
    const german = "Die Werkstatt ist am Sonntag nicht offen und wir sind mit dem Rad da."
    expect(one("Wie Sie uns finden", false, german)).toBe("Wie Sie uns finden?")
    expect(one("Einen Termin buchen", false, german)).toBe("Wie kann ich einen Termin buchen?")
    expect(one("Öffnungszeiten", false, german)).toBe("Was muss ich über „Öffnungszeiten“ wissen?")
  })

  plain("are headings of content in other languages", () => {
    expect(one("Horaires d’ouverture", false, "Nous sommes ouverts du lundi au samedi.")).toBe(
      "Horaires d’ouverture"
    )
  })

  plain("leave out headings that are common on all sites, and come from different pages if possible", () => {
    expect(
      ["Home", "Imprint", "Privacy policy", "https://shop.example", "12", "index.html"].map((text) =>
        one(text)
      )
    ).toEqual(Array.from({ length: 6 }, () => undefined))
    const found = suggestedQuestions([
      heading("Is it new?", "One"),
      heading("Is it old?", "One"),
      heading("Is it old?", "One"),
      heading("Is it blue?", "Two"),
      heading("Warranty", "Three")
    ])
    expect(found).toEqual(["Is it new?", "Is it blue?", "What should I know about “Warranty”?"])
    expect(suggestedQuestions([heading("Is it new?", "One"), heading("Is it old?", "One")])).toHaveLength(2)
  })
})
