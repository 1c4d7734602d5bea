/** The contract of registered readers. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { DocumentParser, ParseError } from "../../../src/capabilities/DocumentParser.ts"
import { registered, SourceReaders } from "../../../src/capabilities/SourceReaders.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { newId, type SourceId } from "../../../src/domain/Ids.ts"
import { layer as layerBuiltIn } from "../../../src/readers/connectors/Registered.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { ConnectorSettings } from "../../../src/usecases/knowledge/ConnectorSettings.ts"
import { Ingest } from "../../../src/usecases/knowledge/Ingest.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, embeddedLive, reset } from "../../TestDatabase.ts"
import { layerSettings } from "../../usecases/knowledge/ConnectorLayers.ts"
import { addSource, layerIngestOf, sync } from "../../usecases/knowledge/IngestHarness.ts"
import { layerReaders } from "../Site.ts"
import { serveStub, type Service } from "./StubService.ts"
import { type Stub, stubs, variants } from "./Stubs.ts"

const sentence = (words: string) =>
  `These are the words about ${words}, and they are long enough to be read as a text.`

const fill = ({ world }: Service) => {
  for (const name of ["a", "b", "c", "d", "e"]) {
    world.set(name, { title: `Document ${name}`, text: sentence(`subject ${name}`), revision: 1 })
  }
}

const change = ({ world }: Pick<Service, "world">, id: string, words: string) => {
  const revision = (world.get(id)?.revision ?? 0) + 1
  world.set(id, { title: `Document ${id}`, text: sentence(words), revision })
}

/** What is found of the source: titles with what their passages say, each as often as it is there. */
const answers = (source: SourceId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ readonly title: string; readonly content: string }>`
      select d.title, c.content from chunks c join documents d on d.id = c.document_id
      where c.source_id = ${source} and c.version is not null order by d.title, c.content`
    return rows.map(
      ({ content, title }) => `${title}: ${/about (.*), and they/u.exec(content)?.[1] ?? content}`
    )
  })

const all = (...ids: ReadonlyArray<string>) => ids.map((id) => `Document ${id}: subject ${id}`)

const ended = (scope: AgentScope, source: SourceId) =>
  Effect.map(
    Effect.flatMap(SourceStore, (sources) => sources.find(scope, source)),
    (found) => ({
      status: found?.status,
      error: found?.lastError ?? null
    })
  )

/** A source of a service with five documents. */
const prepared = (stub: Stub) =>
  Effect.gen(function* () {
    yield* reset
    const service = yield* serveStub((world, asked, origin) =>
      stub.token !== undefined && asked.headers[stub.token.header] !== stub.token.value
        ? { status: 401, body: "{}" }
        : stub.respond(world, asked, origin)
    )
    fill(service)
    const scope = yield* Fixtures.agent()
    const reader = stub.reader(service.origin)
    const readers = Layer.succeed(SourceReaders, registered([reader]))
    const services = layerIngestOf(layerSettings(readers))
    const add = Effect.gen(function* () {
      const settings = yield* ConnectorSettings
      const { config, sealed } = yield* settings.validateNew({
        reader: reader.name,
        settings: stub.settings(service.origin)
      })
      const source = yield* addSource(scope, "CONNECTOR", config)
      yield* settings.keep(scope, source, sealed)
      return source
    })
    return { add, scope, service, services } as const
  })

eachEngineLive("Every reader that comes with Spoke", (it) => {
  it.effect("has a stub here", () =>
    Effect.gen(function* () {
      const readers = yield* SourceReaders
      expect([...readers.keys()].toSorted()).toEqual(Object.keys(stubs).toSorted())
      for (const [name, { fields }] of readers) {
        expect([
          name,
          fields.filter(({ label }) => label.de === undefined).map((field) => field.name)
        ]).toEqual([name, []])
      }
    }).pipe(Effect.provide(layerBuiltIn))
  )
})

for (const [name, stub] of Object.entries({ ...stubs, ...variants })) {
  // What is stored of a document depends on no reader: one of them shows that it is on both engines.
  const onEngines = name === "notion" ? eachEngineLive : embeddedLive
  onEngines(`The reader ${name}`, (it) => {
    it.scoped("reads everything once, then what has changed, and drops what is gone", () =>
      Effect.gen(function* () {
        const { add, scope, service, services } = yield* prepared(stub)
        yield* Effect.gen(function* () {
          const source = yield* add
          yield* sync(scope, source)
          expect(yield* ended(scope, source)).toEqual({ status: "READY", error: null })
          expect(yield* answers(source)).toEqual(all("a", "b", "c", "d", "e"))
          expect(service.asked).toHaveLength(stub.requests)
          const sql = yield* SqlClient.SqlClient
          const ids = sql`select id from documents where source_id = ${source} order by id`
          const before = yield* ids
          yield* sync(scope, source)
          expect(yield* ids).toEqual(before)
          change(service, "b", "something else")
          change(service, "f", "subject f")
          service.world.delete("d")
          yield* sync(scope, source)
          expect(yield* ended(scope, source)).toEqual({ status: "READY", error: null })
          expect(yield* answers(source)).toEqual([
            ...all("a"),
            "Document b: something else",
            ...all("c", "e", "f")
          ])
          const after = yield* ids
          expect(before.filter(({ id }) => after.some((one) => one["id"] === id))).toHaveLength(3)
          yield* sync(scope, source, { force: true })
          expect(yield* answers(source)).toHaveLength(5)
        }).pipe(Effect.provide(services))
      }).pipe(Effect.provide(layerReaders))
    )

    it.scoped("waits where the service asks for fewer requests, at every request", () =>
      Effect.gen(function* () {
        const { add, scope, service, services } = yield* prepared(stub)
        yield* Effect.gen(function* () {
          for (let nth = 1; nth <= stub.requests; nth++) {
            const source = yield* add
            yield* Effect.promise(() =>
              service.disturb(nth, { status: 429, headers: { "retry-after": "0" } })
            )
            yield* sync(scope, source)
            expect([nth, yield* ended(scope, source)]).toEqual([nth, { status: "READY", error: null }])
            expect(yield* answers(source)).toEqual(all("a", "b", "c", "d", "e"))
          }
        }).pipe(Effect.provide(services))
      }).pipe(Effect.provide(layerReaders))
    )

    it.scoped("fails with a reason and keeps what it had when its token ends at any request", () =>
      Effect.gen(function* () {
        const { add, scope, service, services } = yield* prepared(stub)
        yield* Effect.gen(function* () {
          const source = yield* add
          yield* sync(scope, source)
          change(service, "a", "something new")
          const before = service.asked.length
          yield* sync(scope, source)
          const requests = service.asked.length - before
          expect(requests).toBeGreaterThan(0)
          for (let nth = 1; nth <= requests; nth++) {
            change(service, "a", `change ${nth}`)
            const held = yield* answers(source)
            yield* Effect.promise(() => service.disturb(nth, { status: 401 }))
            yield* sync(scope, source)
            const { error, status } = yield* ended(scope, source)
            expect([nth, status]).toEqual([nth, "FAILED"])
            expect(error).toMatch(/^unauthorized: .* answered 401\./u)
            expect(yield* answers(source)).toEqual(held)
            yield* sync(scope, source)
            expect(yield* answers(source)).toEqual([`Document a: change ${nth}`, ...all("b", "c", "d", "e")])
          }
        }).pipe(Effect.provide(services))
      }).pipe(Effect.provide(layerReaders))
    )

    it.scoped("loses nothing else when a document is deleted between any two requests", () =>
      Effect.gen(function* () {
        const { add, scope, service, services } = yield* prepared(stub)
        yield* Effect.gen(function* () {
          for (let nth = 1; nth <= stub.requests; nth++) {
            fill(service)
            const source = yield* add
            yield* sync(scope, source)
            // Everything is read anew, so that there are as many requests.
            yield* Effect.promise(() => service.disturb(nth, { change: (world) => world.delete("b") }))
            yield* sync(scope, source, { force: true })
            expect([nth, yield* ended(scope, source)]).toEqual([nth, { status: "READY", error: null }])
            const found = yield* answers(source)
            expect(found.filter((one) => !one.startsWith("Document b"))).toEqual(all("a", "c", "d", "e"))
            yield* sync(scope, source)
            expect(yield* answers(source)).toEqual(all("a", "c", "d", "e"))
          }
        }).pipe(Effect.provide(services))
      }).pipe(Effect.provide(layerReaders))
    )

    if (["confluence", "feed", "zendesk"].includes(name)) {
      it.scoped(
        "keeps what is live while the service has no time to read an article, and reads it then",
        () =>
          Effect.gen(function* () {
            const parser = yield* DocumentParser
            let isBusy = false
            const busy = new ParseError({
              code: "timed_out",
              message: "The document takes too long to read."
            })
            const { add, scope, service, services } = yield* prepared(stub)
            yield* Effect.gen(function* () {
              const source = yield* add
              yield* sync(scope, source)
              change(service, "a", "something new")
              isBusy = true
              for (const force of [false, true]) {
                yield* sync(scope, source, { force })
                expect(yield* ended(scope, source)).toEqual({ status: "READY", error: null })
                expect(yield* answers(source)).toEqual(all("a", "b", "c", "d", "e"))
              }
              isBusy = false
              yield* sync(scope, source)
              expect(yield* answers(source)).toEqual([
                "Document a: something new",
                ...all("b", "c", "d", "e")
              ])
            }).pipe(
              Effect.provide(services),
              Effect.provideService(DocumentParser, {
                parse: (request) => Effect.suspend(() => (isBusy ? Effect.fail(busy) : parser.parse(request)))
              })
            )
          }).pipe(Effect.provide(layerReaders))
      )
    }

    it.scoped("goes on where it was stopped, at every request, and doubles nothing", () =>
      Effect.gen(function* () {
        const { add, scope, service, services } = yield* prepared(stub)
        const attempt = (jobId: string, number: number) =>
          Effect.gen(function* () {
            const ingest = yield* Ingest
            return yield* ingest.process({
              id: yield* newId.queueJob,
              queue: "ingestion",
              payload: { tenantId: scope.tenantId, jobId },
              attempt: number,
              lastAttempt: false
            })
          }).pipe(Effect.provide(services))
        yield* Effect.gen(function* () {
          for (let nth = 1; nth <= stub.requests; nth++) {
            const source = yield* add
            const jobs = yield* IngestionJobStore
            const { id } = yield* jobs.insert(scope, {
              id: yield* newId.ingestionJob,
              sourceId: source,
              type: "INGEST"
            })
            const before = service.asked.length
            const hang = yield* Deferred.make<void>()
            yield* Effect.promise(() => service.disturb(nth, { hang }))
            // Each attempt has services of its own: nothing but the database knows of the one before.
            const dying = yield* Effect.fork(attempt(id, 1))
            yield* Deferred.await(hang)
            yield* Fiber.interrupt(dying)
            expect(yield* answers(source)).toEqual([])
            yield* attempt(id, 2)
            expect([nth, yield* ended(scope, source)]).toEqual([nth, { status: "READY", error: null }])
            expect(yield* answers(source)).toEqual(all("a", "b", "c", "d", "e"))
            // What was stored is not asked for again: at most one step is repeated.
            const perStep = name === "notion" ? 3 : name.startsWith("git") || name === "confluence" ? 2 : 1
            expect(service.asked.length - before).toBeLessThanOrEqual(stub.requests + perStep)
          }
        }).pipe(Effect.provide(services))
      }).pipe(Effect.provide(layerReaders))
    )
  })
}
