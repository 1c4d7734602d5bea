/** Findings of `spoke doctor` for a healthy service, and for each fault. */
import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Os from "node:os"
import * as Path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Redis } from "ioredis"
import { describe } from "vitest"
import { examine } from "../../src/app/cli/Doctor.ts"
import { clockFinding } from "../../src/app/cli/doctor/Database.ts"
import { diskFinding } from "../../src/app/cli/doctor/Files.ts"
import { redisFindings } from "../../src/app/cli/doctor/Services.ts"
import { fromRecord } from "../../src/app/config/Config.ts"
import { layerPostgres, migrate } from "../../src/store/Database.ts"
import { bucket, s3Server } from "../capabilities/S3Server.ts"
import { mailServer } from "../servers/MailServer.ts"
import * as ModelStub from "../servers/ModelStub.ts"
import { binaries } from "../servers/PostgresServer.ts"
import { startRedis, withRedis } from "../servers/RedisServer.ts"
import { migrations, serverUrl } from "../TestDatabase.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-doctor-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

type Variables = Readonly<Record<string, string>>

/** What is said of a data directory that does not exist yet, by check; a check that says two things joins them. */
const findings = (variables: Variables) =>
  Effect.gen(function* () {
    const parent = yield* folder
    const settings = yield* fromRecord({ SPOKE_DATA_DIR: Path.join(parent, "data"), ...variables }, false)
    const found = yield* examine(settings)
    const of = (check: string) => {
      const about = found.filter((finding) => finding.check === check)
      return about.map(({ message, status }) => `${status}: ${message}`).join("\n")
    }
    return { found, of, parent }
  })

const secret = { SPOKE_SECRET: "s".repeat(40) }
/** A port without a listener. */
const nowhere = "127.0.0.1:1"

describe("spoke doctor", () => {
  it.live("finds nothing to mend before the first start, and makes nothing", () =>
    Effect.gen(function* () {
      const { found, of, parent } = yield* findings({})
      expect(found.filter(({ status }) => status === "problem")).toEqual([])
      expect(found.filter(({ check }) => check === "queue").map(({ message }) => message)).toEqual([
        "in the embedded database"
      ])
      // A clone has every package.
      expect(of("packages")).toMatch(/^ok: /)
      expect(Fs.readdirSync(parent)).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("names files of secrets that others may read", () =>
    Effect.gen(function* () {
      const parent = yield* folder
      Fs.writeFileSync(Path.join(parent, "secrets.json"), "{}", { mode: 0o644 })
      const open = yield* findings({ SPOKE_DATA_DIR: parent })
      expect(open.of("file modes")).toMatch(/^problem: others may read \S+secrets\.json: chmod/u)
      Fs.chmodSync(Path.join(parent, "secrets.json"), 0o600)
      expect((yield* findings({ SPOKE_DATA_DIR: parent })).of("file modes")).toMatch(/^ok: /u)
    }).pipe(Effect.scoped)
  )

  it("judges free space, and the distance of two clocks", () => {
    const statuses = (all: ReadonlyArray<{ readonly status: string }>) => all.map(({ status }) => status)
    const mebibyte = 1_048_576
    expect(statuses([5_000, 500, 50].map((free) => diskFinding(free * mebibyte)))).toEqual([
      "ok",
      "warning",
      "problem"
    ])
    expect(statuses([0.1, -5, 5, -120].map(clockFinding))).toEqual(["ok", "warning", "warning", "problem"])
  })

  it("wants Redis 6.2 or newer", () => {
    const said = (version: string) =>
      redisFindings(`# Server\r\nredis_version:${version}\r\nmaxmemory_policy:noeviction\r\n`)[0]?.status
    expect(["5.0.14", "6.0.16", "6.2.0", "7.4.1"].map(said)).toEqual(["problem", "problem", "ok", "ok"])
  })

  it.live("tries a bucket by a few bytes, which it removes again", () =>
    Effect.gen(function* () {
      const store = yield* s3Server
      const place = {
        SPOKE_ARTIFACTS: `s3://${bucket}/originals`,
        S3_ENDPOINT: store.url,
        AWS_ACCESS_KEY_ID: "S3RVER",
        AWS_SECRET_ACCESS_KEY: "S3RVER"
      }
      expect((yield* findings(place)).of("originals")).toMatch(/^ok: stored in bucket artifacts/u)
      const left = Fs.readdirSync(store.directory, { recursive: true, encoding: "utf8" })
      expect(left.filter((name) => name.includes("sha256"))).toEqual([])
      const wrong = yield* findings({
        ...place,
        SPOKE_ARTIFACTS: "s3://absent",
        AWS_SECRET_ACCESS_KEY: "canary-key"
      })
      expect(wrong.of("originals")).toMatch(/^problem: bucket absent: /u)
      expect(JSON.stringify(wrong.found)).not.toContain("canary")
    }).pipe(Effect.scoped)
  )

  it.live("asks the model for a word and the embedding model for a vector", () =>
    Effect.gen(function* () {
      const stub = yield* ModelStub.make
      const given = { OPENAI_API_KEY: "canary-key", OPENAI_BASE_URL: stub.url, SPOKE_CHAT_MODEL: "small" }
      stub.dimensions = 1_536
      const well = yield* findings(given)
      expect([well.of("model"), well.of("embedding")]).toEqual([
        `ok: small at ${stub.url} (chat-completions)`,
        "ok: text-embedding-3-small answers with 1536 dimensions"
      ])
      expect(stub.requests.map(({ body, path }) => [path, body.model])).toEqual([
        ["/chat/completions", "small"],
        ["/embeddings", "text-embedding-3-small"]
      ])
      stub.script.push(
        { status: 404 },
        { raw: [JSON.stringify({ data: [{ index: 0, embedding: [1, 0] }] })] }
      )
      const odd = yield* findings(given)
      expect(odd.of("model")).toBe(
        "problem: small: the provider does not know the model, or its address is wrong: see SPOKE_CHAT_MODEL, SPOKE_FALLBACK_MODELS and OPENAI_BASE_URL, which usually ends in /v1"
      )
      expect(odd.of("embedding")).toMatch(/^problem: text-embedding-3-small \(1536 dimensions\)/u)
      stub.script.push({ status: 401 }, { status: 401 })
      const refused = yield* findings(given)
      expect(refused.of("model")).toBe("problem: small: the provider refuses the key: see OPENAI_API_KEY")
      expect(refused.of("embedding")).toMatch(/^problem: /u)
      stub.script.push({ raw: ["<html></html>"], contentType: "text/html" }, { status: 404 })
      const page = yield* findings(given)
      expect(page.of("model")).toBe(
        "problem: small: The provider's answer cannot be read: it is not an event stream: see OPENAI_BASE_URL"
      )
      const gone = yield* findings({ ...given, OPENAI_BASE_URL: `http://${nowhere}/v1` })
      expect(gone.of("model")).toBe(
        "problem: small: The provider could not be reached (ECONNREFUSED): see OPENAI_BASE_URL"
      )
      expect(JSON.stringify([well, odd, refused, page, gone])).not.toContain("canary")
    }).pipe(Effect.scoped)
  )

  it.live("asks every model of the configuration, and names the one that does not answer", () =>
    Effect.gen(function* () {
      const [main, other, third] = yield* Effect.all([ModelStub.make, ModelStub.make, ModelStub.make])
      const given = {
        OPENAI_API_KEY: "canary-key",
        OPENAI_BASE_URL: main.url,
        SPOKE_CHAT_MODEL: "small",
        SPOKE_EMBEDDING_MODEL: "offline",
        KEY_OTHER: "canary-other",
        SPOKE_PROVIDERS: JSON.stringify({
          other: { baseUrl: other.url, apiKeyEnv: "KEY_OTHER" },
          third: { baseUrl: third.url },
          claude: { baseUrl: other.url, apiKeyEnv: "KEY_OTHER", api: "anthropic" },
          azure: { baseUrl: third.url, apiKeyEnv: "KEY_OTHER", api: "azure", apiVersion: "2024-10-21" },
          unused: { baseUrl: third.url, apiKeyEnv: "KEY_OTHER" },
          gone: { baseUrl: `http://${nowhere}/v1` }
        }),
        SPOKE_FALLBACK_MODELS: "other/big,other/team/bigger,claude/opus,azure/a-deployment,gone/any,large"
      }
      const found = yield* findings(given)
      expect(found.of("model")).toBe(`ok: small, large at ${main.url} (chat-completions)`)
      expect(found.of("model other")).toBe(`ok: big, team/bigger at ${other.url} (chat-completions)`)
      expect(found.of("model claude")).toBe(`ok: opus at ${other.url} (anthropic)`)
      expect(found.of("model azure")).toBe(`ok: a-deployment at ${third.url} (azure)`)
      expect(found.of("model gone")).toBe(
        "problem: any: The provider could not be reached (ECONNREFUSED): see its baseUrl in SPOKE_PROVIDERS"
      )
      // No model of these is known, and the stub has no list of models.
      expect(found.of("model third")).toBe(`ok: answers at ${third.url} (chat-completions)`)
      expect(found.of("model unused")).toBe(`ok: answers at ${third.url} (chat-completions)`)
      expect(third.requests.map(({ path }) => path).toSorted()).toEqual([
        "/deployments/a-deployment/chat/completions?api-version=2024-10-21",
        "/models",
        "/models"
      ])
      expect(
        other.requests.map(({ headers }) => headers.authorization ?? headers["x-api-key"]).toSorted()
      ).toEqual(["Bearer canary-other", "Bearer canary-other", "canary-other"])
      other.otherwise = { status: 401 }
      third.otherwise = { status: 403 }
      const refused = yield* findings(given)
      expect(refused.of("model other")).toBe(
        [
          "problem: big: the provider refuses the key: see its apiKeyEnv in SPOKE_PROVIDERS",
          "problem: team/bigger: the provider refuses the key: see its apiKeyEnv in SPOKE_PROVIDERS"
        ].join("\n")
      )
      expect(refused.of("model unused")).toBe(
        "problem: the provider refuses the key: see its apiKeyEnv in SPOKE_PROVIDERS"
      )
      expect(JSON.stringify([found.found, refused.found])).not.toContain("canary")
    }).pipe(Effect.scoped)
  )

  it.live("names the variables of the provider of the default model, also without OPENAI_API_KEY", () =>
    Effect.gen(function* () {
      const stub = yield* ModelStub.make
      stub.otherwise = { status: 401 }
      const { of } = yield* findings({
        SPOKE_CHAT_MODEL: "local/small",
        SPOKE_PROVIDERS: JSON.stringify({ local: { baseUrl: stub.url } }),
        SPOKE_EMBEDDING_MODEL: "offline"
      })
      expect(of("model")).toBe(
        "problem: small: the provider refuses the key: see its apiKeyEnv in SPOKE_PROVIDERS"
      )
      expect(of("model local")).toBe("")
    }).pipe(Effect.scoped)
  )

  it.live("asks the grounding service about one sentence of its own", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      let answer = { status: 200, body: JSON.stringify({ supportScore: 1 }) }
      const service = Http.createServer((request, response) => {
        asked.push(`${request.method} ${request.url} ${request.headers.authorization}`)
        request.resume().on("end", () => response.writeHead(answer.status).end(answer.body))
      })
      yield* Effect.acquireRelease(
        Effect.async<void>((resume) => void service.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => service.close())
      )
      const { port } = service.address() as AddressInfo
      const given = {
        SPOKE_GROUNDING_URL: `http://127.0.0.1:${port}/check-grounding`,
        SPOKE_GROUNDING_API_KEY: "canary-key"
      }
      expect((yield* findings(given)).of("grounding")).toBe("ok: the service answers")
      expect(asked).toEqual(["POST /check-grounding Bearer canary-key"])
      answer = { status: 401, body: "canary" }
      const refused = yield* findings(given)
      expect(refused.of("grounding")).toMatch(/^problem: .*status 401.*SPOKE_GROUNDING_URL/u)
      answer = { status: 200, body: "canary" }
      const broken = yield* findings(given)
      expect(broken.of("grounding")).toMatch(/^problem: .*cannot be read/u)
      expect(JSON.stringify([refused.found, broken.found])).not.toContain("canary")
      expect((yield* findings({})).of("grounding")).toBe("")
    }).pipe(Effect.scoped)
  )

  it.live("tries a reranker", () =>
    Effect.gen(function* () {
      const given = { SPOKE_RERANK_URL: `http://${nowhere}/rerank`, SPOKE_RERANK_MODEL: "small" }
      expect((yield* findings(given)).of("reranker")).toBe("problem: The reranker could not be reached.")
    }).pipe(Effect.scoped)
  )

  it.live("signs in at the mail server, and sends nothing", () =>
    Effect.gen(function* () {
      const server = yield* mailServer()
      const given = { SMTP_URL: Redacted.value(server.url), ALERT_EMAIL: "operator@museum.example" }
      expect((yield* findings(given)).of("mail")).toBe("ok: the server accepts the sign-in")
      const wrong = yield* findings({ ...given, SMTP_URL: Redacted.value(server.urlOf("canary-password")) })
      expect(wrong.of("mail")).toBe("problem: The mail server refused the login (EAUTH, 535). See SMTP_URL.")
      expect(server.received).toEqual([])
      expect(JSON.stringify(wrong.found)).not.toContain("canary")
    }).pipe(Effect.scoped)
  )

  it.live("asks the collector of telemetry", () =>
    Effect.gen(function* () {
      const collector = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const server = Http.createServer((request, response) => {
            response.statusCode = request.headers["x-team"] === "museum" ? 200 : 401
            response.end("{}")
          })
          await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
          return server
        }),
        (server) => Effect.sync(() => void server.close())
      )
      const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
      const of = (variables: Variables) =>
        Effect.map(findings({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...variables }), (found) =>
          found.of("telemetry")
        )
      expect(yield* of({ OTEL_EXPORTER_OTLP_HEADERS: "x-team=museum" })).toBe("ok: the collector answers")
      expect(yield* of({})).toBe("problem: the collector refuses OTEL_EXPORTER_OTLP_HEADERS")
      expect(yield* of({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://${nowhere}` })).toContain("does not answer")
    }).pipe(Effect.scoped)
  )
})

withRedis("spoke doctor", () => {
  it.live("wants a Redis that drops nothing", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startRedis()),
        ({ stop }) => Effect.promise(stop)
      )
      const redis = { REDIS_URL: server.url }
      const well = yield* findings(redis)
      expect(well.of("redis")).toMatch(/^ok: answers, version \S+$/u)
      expect(well.of("queue")).toBe("ok: in the embedded database")
      yield* Effect.promise(async () => {
        const client = new Redis(server.url)
        await client.config("SET", "maxmemory-policy", "allkeys-lru")
        client.disconnect()
      })
      expect((yield* findings(redis)).of("redis")).toContain(
        "problem: drops keys when it is full (allkeys-lru)"
      )
      yield* Effect.promise(async () => {
        const client = new Redis(server.url)
        await client.replicaof("127.0.0.1", "1")
        client.disconnect()
      })
      expect((yield* findings(redis)).of("redis")).toContain(
        "problem: is a replica: REDIS_URL has to name the master"
      )
    }).pipe(Effect.scoped)
  )

  it.live(
    "distinguishes a Redis that refuses the password or the database from one that does not answer",
    () =>
      Effect.gen(function* () {
        const server = yield* Effect.acquireRelease(
          Effect.promise(() => startRedis()),
          ({ stop }) => Effect.promise(stop)
        )
        yield* Effect.promise(async () => {
          const client = new Redis(server.url)
          await client.config("SET", "requirepass", "right")
          client.disconnect()
        })
        const of = (password: string, database = "") => {
          const url = new URL(server.url)
          url.password = password
          url.pathname = database
          return Effect.map(findings({ REDIS_URL: url.href }), (found) => found.of("redis"))
        }
        expect(yield* of("canary-password")).toBe("problem: refuses the user or the password of REDIS_URL")
        expect(yield* of("")).toBe("problem: refuses the user or the password of REDIS_URL")
        expect(yield* of("right", "/99")).toBe("problem: refuses the database that REDIS_URL names")
        expect(yield* of("right", "/15")).toMatch(/^ok: answers/u)
        const gone = yield* findings({ REDIS_URL: `redis://${nowhere}` })
        expect(gone.of("redis")).toBe("problem: does not answer at REDIS_URL (ECONNREFUSED)")
      }).pipe(Effect.scoped)
  )
})

// CI has the binaries: other suites fail there without them.
describe.skipIf(binaries === undefined)("spoke doctor (PostgreSQL server)", () => {
  it.live("says what waits to be migrated and what the pool asks for, and changes nothing", () =>
    Effect.gen(function* () {
      const server = layerPostgres({ url: yield* serverUrl, maxConnections: 2 })
      const name = `spoke_doctor_${process.pid}`
      const within = <A, E>(ask: Effect.Effect<A, E, SqlClient.SqlClient>) => Effect.provide(ask, server)
      const run = (statement: string) =>
        within(Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(statement)))
      yield* Effect.acquireRelease(run(`create database ${name}`), () =>
        Effect.ignore(run(`drop database ${name} with (force)`))
      )
      const address = new URL(Redacted.value(yield* serverUrl))
      address.pathname = `/${name}`
      const given = { ...secret, DATABASE_URL: address.href }
      for (const round of [1, 2]) {
        const { of } = yield* findings(given)
        expect(of("migrations"), `round ${round}`).toMatch(/^warning: \d+ wait/u)
        expect(of("database")).toMatch(/^ok: PostgreSQL 1\d/u)
        expect(of("queue")).toBe("ok: in PostgreSQL")
        expect(of("clock")).toMatch(/^ok: /u)
        expect(of("connections")).toMatch(/^ok: .* 11 connections a process/u)
        expect(of("search")).toMatch(/^(ok: pgvector|warning: in-process)/u)
      }
      const greedy = yield* findings({ ...given, SPOKE_DATABASE_POOL: "400" })
      expect(greedy.of("connections")).toMatch(/^problem: .*raise max_connections/u)
      yield* Effect.acquireRelease(run(`create role ${name} login connection limit 8`), () =>
        Effect.ignore(run(`drop role ${name}`))
      )
      address.username = name
      const bound = yield* findings({ ...given, DATABASE_URL: address.href })
      expect(bound.of("connections")).toMatch(/^problem: .* room for 8:/u)
      yield* run(`alter role ${name} connection limit -1`)
      yield* run(`alter database ${name} connection limit 9`)
      const smaller = yield* findings({ ...given, DATABASE_URL: address.href, SPOKE_DATABASE_POOL: "4" })
      expect(smaller.of("connections")).toMatch(/^ok: .* room for 9: 1 process$/u)
      const strange = yield* findings({
        ...given,
        DATABASE_URL: `postgres://spoke:canary-password@${nowhere}/spoke`
      })
      expect(strange.of("database")).toBe("problem: The PostgreSQL server cannot be reached (ECONNREFUSED).")
      expect(strange.of("queue")).toBe("warning: in PostgreSQL, which could not be asked: see database")
      expect(JSON.stringify(strange.found)).not.toContain("canary")
      yield* migrate(migrations).pipe(
        Effect.provide(layerPostgres({ url: Redacted.make(given.DATABASE_URL), maxConnections: 2 }))
      )
      expect((yield* findings(given)).of("queue")).toBe("ok: in PostgreSQL: 0 jobs wait, none has failed")
    }).pipe(Effect.scoped)
  )

  it.live("sends a notification through SPOKE_DATABASE_DIRECT_URL", () =>
    Effect.gen(function* () {
      const server = Redacted.value(yield* serverUrl)
      const of = (direct: string) =>
        findings({ ...secret, DATABASE_URL: server, SPOKE_DATABASE_DIRECT_URL: direct })
      expect((yield* of(server)).of("notifications")).toBe("ok: arrive at SPOKE_DATABASE_DIRECT_URL")
      const wrong = yield* of(`postgres://spoke:canary-password@${nowhere}/spoke`)
      expect(wrong.of("notifications")).toMatch(/^problem: .*SPOKE_DATABASE_DIRECT_URL.*ECONNREFUSED/u)
      expect(JSON.stringify(wrong.found)).not.toContain("canary")
      const other = yield* of(server.replace(/postgres$/u, "template1"))
      expect(other.of("notifications")).toMatch(/^problem: None arrives at SPOKE_DATABASE_DIRECT_URL/u)
    }).pipe(Effect.scoped)
  )
})
