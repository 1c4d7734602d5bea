import { expect, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, type Answer, call, type Call, signedIn } from "./AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const outcome = ({ error, status }: Answer) => [status, error?.code]

/** A tenant with an agent of one version. */
const begun = Effect.gen(function* () {
  yield* reset
  const { cookie, tenantId } = yield* signedIn("ada@example.com")
  const made = yield* call("POST", "/api/agents", {
    cookie,
    body: { name: "Helper", instructions: "First." }
  })
  const path = `/api/agents/${made.data.agent.id}`
  const ask = (method: string, below: string, options: Call = {}) =>
    call(method, `${path}${below}`, { cookie, ...options })
  return { ask, cookie, id: `${made.data.agent.id}`, path, tenantId }
})

const patch = (instructions: string, more: object = {}) => ({ body: { instructions, ...more } })

layer(Server, { excludeTestServices: true })("Versions of an agent", (it) => {
  it.effect("are listed newest first, page by page, with author and note", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      yield* ask("PATCH", "", patch("Second.", { note: " Shorter " }))
      yield* ask("PATCH", "", patch("Third."))
      const first = yield* ask("GET", "/versions?limit=2")
      const user = { type: "user", id: expect.stringMatching(/^mbr_|^usr_/) }
      const shown = (version: number, note: string | null) => ({
        version,
        note,
        author: user,
        createdAt: expect.any(String),
        published: version === 3
      })
      expect(first.data).toEqual({
        versions: [shown(3, null), shown(2, "Shorter")],
        nextCursor: expect.any(String)
      })
      const rest = yield* ask("GET", `/versions?limit=2&cursor=${first.data.nextCursor}`)
      expect(rest.data).toEqual({ versions: [shown(1, null)], nextCursor: null })
    })
  )

  it.effect("show their settings, and the differences from the version before", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      yield* ask("PATCH", "", {
        body: {
          instructions: "Second.",
          greeting: "Hello!",
          retrieval: { topK: 3 },
          grounding: { mode: "general" }
        }
      })
      const { data } = yield* ask("GET", "/versions/2")
      expect(data.version).toMatchObject({
        version: 2,
        published: true,
        settings: {
          name: "Helper",
          instructions: "Second.",
          model: null,
          greeting: "Hello!",
          retrieval: { topK: 3, minScore: null },
          tools: [],
          grounding: { mode: "general", unsupported: "annotate", contextTokens: 6_000, maxSearches: 0 }
        }
      })
      expect(data.changes).toEqual(
        expect.arrayContaining([
          { field: "instructions", before: "First.", after: "Second." },
          { field: "greeting", before: null, after: "Hello!" },
          { field: "retrieval.topK", before: 6, after: 3 },
          { field: "grounding.mode", before: "strict", after: "general" }
        ])
      )
      expect(data.changes).toHaveLength(4)
      expect((yield* ask("GET", "/versions/1")).data.changes).toEqual([])
    })
  )

  it.effect("can be restored in one step: the agent has the settings of the published version", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      yield* ask("PATCH", "", patch("Second.", { name: "Renamed", tools: null, retrieval: { topK: 9 } }))
      const back = yield* ask("POST", "/versions/1/publish")
      expect(back.data.agent).toMatchObject({
        name: "Helper",
        instructions: "First.",
        retrieval: { topK: 6 },
        version: 2,
        publishedVersion: 1
      })
      const { versions } = (yield* ask("GET", "/versions")).data
      expect(versions.map(({ published }: { readonly published: boolean }) => published)).toEqual([
        false,
        true
      ])
      // A change is made from what is published.
      const next = yield* ask("PATCH", "", { body: { greeting: "Hello!" } })
      expect(next.data.agent).toMatchObject({
        instructions: "First.",
        greeting: "Hello!",
        publishedVersion: 3
      })
    })
  )

  it.effect("that are drafts change only the newest version's number until they are published", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      const drafted = yield* ask("PATCH", "", patch("Draft.", { publish: false }))
      expect(drafted.data.agent).toMatchObject({ instructions: "First.", version: 2, publishedVersion: 1 })
      const continued = yield* ask("PATCH", "", { body: { greeting: "Hi.", publish: false, from: 2 } })
      expect(continued.data.agent).toMatchObject({ greeting: null, version: 3, publishedVersion: 1 })
      const { agent } = (yield* ask("POST", "/versions/3/publish")).data
      expect(agent).toMatchObject({
        instructions: "Draft.",
        greeting: "Hi.",
        version: 3,
        publishedVersion: 3
      })
    })
  )

  it.effect("refuse the change of a second tab after the first has saved", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      const read = yield* ask("GET", "")
      const etag = read.headers.get("etag") ?? ""
      expect(etag).toBe('"1"')
      const first = yield* ask("PATCH", "", { ...patch("Tab one."), headers: { "if-match": etag } })
      expect([first.status, first.headers.get("etag")]).toEqual([200, '"2"'])
      const second = yield* ask("PATCH", "", { ...patch("Tab two."), headers: { "if-match": etag } })
      expect(outcome(second)).toEqual([409, "CONFLICT"])
      expect(second.error.details).toEqual({ version: 2 })
      expect((yield* ask("GET", "")).data.agent).toMatchObject({ instructions: "Tab one.", version: 2 })
      expect((yield* ask("GET", "/versions")).data.versions).toHaveLength(2)
      // A draft is a newer version too.
      yield* ask("PATCH", "", patch("Draft.", { publish: false }))
      const third = yield* ask("PATCH", "", { ...patch("Tab one again."), headers: { "if-match": '"2"' } })
      expect(outcome(third)).toEqual([409, "CONFLICT"])
    })
  )

  it.effect("refuse a change of the published version if another one has been published since", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      yield* ask("PATCH", "", patch("Second."))
      yield* ask("POST", "/versions/1/publish")
      const headers = { "if-match": '"2"' }
      const late = yield* ask("PATCH", "", { body: { greeting: "Hello!", from: 2 }, headers })
      expect(outcome(late)).toEqual([409, "CONFLICT"])
      expect((yield* ask("GET", "")).data.agent).toMatchObject({
        greeting: null,
        version: 2,
        publishedVersion: 1
      })
      const again = yield* ask("PATCH", "", { body: { greeting: "Hello!", from: 1 }, headers })
      expect(again.data.agent).toMatchObject({ instructions: "First.", greeting: "Hello!", version: 3 })
    })
  )

  it.effect("are created for each of many concurrent changes, and none is lost", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      yield* Effect.all(
        Array.from({ length: 8 }, (_, place) => ask("PATCH", "", patch(`Change ${place}.`))),
        { concurrency: 8 }
      )
      const { versions } = (yield* ask("GET", "/versions")).data
      expect(versions.map(({ version }: { readonly version: number }) => version)).toEqual([
        9, 8, 7, 6, 5, 4, 3, 2, 1
      ])
      const { agent } = (yield* ask("GET", "")).data
      const newest = (yield* ask("GET", "/versions/9")).data.version
      expect([agent.instructions, newest.published]).toEqual([newest.settings.instructions, true])
    })
  )

  it.effect("that do not exist, and agents of other tenants, are 404 and nothing changes", () =>
    Effect.gen(function* () {
      const { ask, path } = yield* begun
      const { cookie } = yield* signedIn("eve@example.com")
      for (const version of ["0", "2", "2147483647"]) {
        expect(outcome(yield* ask("GET", `/versions/${version}`))).toEqual([404, "NOT_FOUND"])
        expect(outcome(yield* ask("POST", `/versions/${version}/publish`))).toEqual([404, "NOT_FOUND"])
      }
      for (const version of ["x", "-1", "1.5", "2147483648"])
        expect(outcome(yield* ask("GET", `/versions/${version}`))).toEqual([400, "VALIDATION_ERROR"])
      const foreign: ReadonlyArray<readonly [string, string, Call]> = [
        ["GET", "/versions", {}],
        ["GET", "/versions/1", {}],
        ["POST", "/versions/1/publish", {}],
        ["PUT", "/split", { body: { version: 1, share: 0.5 } }],
        ["DELETE", "/split", {}]
      ]
      for (const [method, below, options] of foreign)
        expect(outcome(yield* call(method, `${path}${below}`, { ...options, cookie }))).toEqual([
          404,
          "NOT_FOUND"
        ])
      expect(outcome(yield* ask("PATCH", "", patch("Third.", { from: 7 })))).toEqual([
        400,
        "VALIDATION_ERROR"
      ])
      // More than a column holds.
      const version = 2 ** 31
      for (const [method, below, body] of [
        ["PATCH", "", { greeting: "Hello!", from: version }],
        ["PUT", "/split", { version, share: 0.5 }],
        ["POST", "/experiments", { version }],
        ["POST", "/experiments", { baselineVersion: version }]
      ] as const)
        expect(outcome(yield* ask(method, below, { body }))).toEqual([400, "VALIDATION_ERROR"])
      expect((yield* ask("GET", "")).data.agent).toMatchObject({
        version: 1,
        publishedVersion: 1,
        split: null
      })
    })
  )

  it.effect("are read by viewers, published by admins, and audited", () =>
    Effect.gen(function* () {
      const { ask, cookie, id } = yield* begun
      const sql = yield* SqlClient.SqlClient
      yield* ask("PATCH", "", patch("Second."))
      yield* ask("POST", "/versions/1/publish")
      yield* ask("PUT", "/split", { body: { version: 2, share: 0.25 } })
      yield* ask("DELETE", "/split")
      const trail = yield* call("GET", "/api/audit?limit=3", { cookie })
      expect(
        trail.data.entries.map((entry: { readonly action: string; readonly target: string }) => [
          entry.action,
          entry.target
        ])
      ).toEqual([
        ["agent.split", id],
        ["agent.split", id],
        ["agent.publish", id]
      ])
      yield* sql`update users set role = 'viewer'`
      expect((yield* ask("GET", "/versions")).status).toBe(200)
      expect((yield* ask("GET", "/versions/1")).status).toBe(200)
      expect(outcome(yield* ask("POST", "/versions/2/publish"))).toEqual([403, "FORBIDDEN"])
      expect(outcome(yield* ask("PUT", "/split", { body: { version: 2, share: 1 } }))).toEqual([
        403,
        "FORBIDDEN"
      ])
      expect(outcome(yield* ask("DELETE", "/split"))).toEqual([403, "FORBIDDEN"])
    })
  )

  it.effect("have a share of the conversations, until they are published or the share is ended", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      yield* ask("PATCH", "", patch("Draft.", { publish: false }))
      const split = { version: 2, share: 0.5 }
      expect((yield* ask("PUT", "/split", { body: split })).data.agent.split).toEqual(split)
      for (const wrong of [{ share: 0 }, { share: 1.1 }, { version: 0 }, { share: "0.5" }])
        expect(outcome(yield* ask("PUT", "/split", { body: { ...split, ...wrong } }))).toEqual([
          400,
          "VALIDATION_ERROR"
        ])
      expect(outcome(yield* ask("PUT", "/split", { body: { ...split, version: 9 } }))).toEqual([
        404,
        "NOT_FOUND"
      ])
      expect((yield* ask("GET", "")).data.agent).toMatchObject({ instructions: "First.", split })
      const published = yield* ask("POST", "/versions/2/publish")
      expect(published.data.agent).toMatchObject({ split: null, publishedVersion: 2 })
      yield* ask("PUT", "/split", { body: { version: 1, share: 1 } })
      expect((yield* ask("DELETE", "/split")).data.agent.split).toBeNull()
    })
  )

  it.effect("are deleted with their agent", () =>
    Effect.gen(function* () {
      const { ask } = yield* begun
      const sql = yield* SqlClient.SqlClient
      yield* ask("PATCH", "", patch("Second."))
      expect((yield* ask("DELETE", "")).status).toBe(200)
      expect(yield* sql`select version from agent_versions`).toEqual([])
      expect(outcome(yield* ask("GET", "/versions"))).toEqual([404, "NOT_FOUND"])
    })
  )
})
