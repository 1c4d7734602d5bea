import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { describe } from "vitest"
import { fromRecord, Variables } from "../../src/app/config/Config.ts"
import { keepsAll } from "../../src/domain/accounts/Retention.ts"
import { secretVariables } from "../../src/app/config/SecretFiles.ts"
import { unknownVariables } from "../../src/app/config/UnknownVariables.ts"

const problems = (environment: Readonly<Record<string, string>>) =>
  Effect.map(Effect.flip(fromRecord(environment, false)), (error) =>
    Object.fromEntries(error.problems.map(({ variable, message }) => [variable, message]))
  )

describe("The configuration", () => {
  it.effect("has a default for everything, and takes an empty variable for unset", () =>
    Effect.gen(function* () {
      const settings = yield* fromRecord({ PORT: "", DATABASE_URL: " " }, false)
      expect(settings).toMatchObject({
        host: "127.0.0.1",
        port: 3000,
        database: null,
        model: null,
        embedding: null,
        rerank: null,
        grounding: { checker: "words" },
        appUrl: "http://127.0.0.1:3000",
        apiUrl: "http://127.0.0.1:3000/v1",
        realtimeUrl: "ws://127.0.0.1:3000/api/realtime",
        runtimeData: true,
        logFormat: "json"
      })
      expect(Duration.toSeconds(settings.turnTimeout)).toBe(60)
      expect(Duration.toSeconds(settings.drainDelay)).toBe(1)
      expect(Duration.toSeconds(settings.maxWait)).toBe(30)
      expect(Option.isNone(settings.operatorToken)).toBe(true)
    })
  )

  it.effect("reads secrets from files, and says which cannot be read, never what they hold", () =>
    Effect.gen(function* () {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-config-"))
      const file = (name: string, text: string) => {
        fs.writeFileSync(path.join(folder, name), text)
        return path.join(folder, name)
      }
      const settings = yield* fromRecord(
        {
          DATABASE_URL_FILE: file("database", "postgres://db/spoke\n"),
          SPOKE_SECRET_FILE: file("secret", `${"s".repeat(40)}\n`),
          SMTP_URL_FILE: file("empty", "\n")
        },
        false
      )
      expect(settings.secrets.map(Redacted.value)).toEqual(["s".repeat(40)])
      expect(settings.database).not.toBeNull()
      expect(settings.mail).toBeNull()
      const found = yield* problems({
        SPOKE_SECRET_FILE: file("short", "canary"),
        OPENAI_API_KEY_FILE: path.join(folder, "absent"),
        REDIS_URL: "redis://localhost",
        REDIS_URL_FILE: file("redis", "redis://canary")
      })
      fs.rmSync(folder, { recursive: true })
      expect(Object.keys(found).toSorted()).toEqual(["OPENAI_API_KEY_FILE", "REDIS_URL_FILE", "SPOKE_SECRET"])
      expect(JSON.stringify(found)).not.toContain("canary")
      expect(unknownVariables({ SPOKE_SECRET_FILE: "a", SPOKE_SECRET_FILES: "b" })).toEqual([
        "SPOKE_SECRET_FILES is not a variable of Spoke; did you mean SPOKE_SECRET_FILE?"
      ])
    })
  )

  it("takes every variable that holds a secret from a file", () => {
    const secret = /SECRET|TOKEN|PASSWORD|KEY|HEADERS|^(DATABASE|REDIS|SMTP)_URL|DIRECT_URL/u
    expect(
      Object.keys(Variables.fields)
        .filter((name) => secret.test(name))
        .toSorted()
    ).toEqual(secretVariables.toSorted())
  })

  it.effect("reports all problems together, by variable name, and never repeats a value", () =>
    Effect.gen(function* () {
      const found = yield* problems({
        PORT: "99999",
        SPOKE_SECRET: "too-short",
        SPOKE_TURN_TIMEOUT: "soon",
        SPOKE_RUNTIME_DATA: "perhaps",
        APP_URL: "ftp://example.com",
        DATABASE_URL: "mysql://root:hunter2@db/x",
        SPOKE_FETCH_ALLOW: "10.0.0.0/99"
      })
      expect(Object.keys(found).sort()).toEqual([
        "APP_URL",
        "DATABASE_URL",
        "PORT",
        "SPOKE_FETCH_ALLOW",
        "SPOKE_RUNTIME_DATA",
        "SPOKE_SECRET",
        "SPOKE_TURN_TIMEOUT"
      ])
      expect(JSON.stringify(found)).not.toMatch(/hunter2|too-short|99999|perhaps/)
    })
  )

  it.effect("takes the previous secret only beside the current one", () =>
    Effect.gen(function* () {
      const found = yield* problems({ SPOKE_SECRET_PREVIOUS: "p".repeat(40) })
      expect(found).toEqual({ SPOKE_SECRET: "Required with SPOKE_SECRET_PREVIOUS" })
    })
  )

  it.effect(
    "takes the direct address only beside that of the pooler, so that no embedded store is used instead",
    () =>
      Effect.gen(function* () {
        const direct = { SPOKE_DATABASE_DIRECT_URL: "postgres://localhost/spoke" }
        expect(yield* problems(direct)).toEqual({ DATABASE_URL: "Required with SPOKE_DATABASE_DIRECT_URL" })
        yield* fromRecord(
          { ...direct, DATABASE_URL: "postgres://pooler/spoke", SPOKE_SECRET: "s".repeat(40) },
          false
        )
      })
  )

  it.effect("takes every name of a header for the collector", () =>
    Effect.gen(function* () {
      const { telemetry } = yield* fromRecord(
        {
          OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
          OTEL_EXPORTER_OTLP_HEADERS: "x_team.key=museum, api-key=a%2Cb"
        },
        false
      )
      expect(telemetry === null ? null : Redacted.value(telemetry.headers)).toEqual({
        "x_team.key": "museum",
        "api-key": "a,b"
      })
      for (const wrong of ["x team=museum", "=museum", "x-team"])
        expect(Object.keys(yield* problems({ OTEL_EXPORTER_OTLP_HEADERS: wrong }))).toEqual([
          "OTEL_EXPORTER_OTLP_HEADERS"
        ])
    })
  )

  it.effect("takes no time that is longer than a timer can be", () =>
    Effect.gen(function* () {
      for (const variable of ["SPOKE_TURN_TIMEOUT", "SPOKE_MAX_WAIT", "SPOKE_DRAIN_DELAY"]) {
        expect(yield* problems({ [variable]: "25 hours" })).toEqual({
          [variable]: 'Expected a duration longer than zero and at most 1 day, like "60 seconds"'
        })
        yield* fromRecord({ [variable]: "1 day" }, false)
      }
      const { snapshots } = yield* fromRecord({ SPOKE_SNAPSHOT_INTERVAL: "30 days" }, false)
      expect(snapshots?.every).toEqual(Duration.days(30))
    })
  )

  it.effect("says which durations and rates it takes: with zero, a negative one and a longer one", () =>
    Effect.gen(function* () {
      const messages = {
        SPOKE_TURN_TIMEOUT: 'Expected a duration longer than zero and at most 1 day, like "60 seconds"',
        SPOKE_MAX_WAIT: 'Expected a duration longer than zero and at most 1 day, like "60 seconds"',
        SPOKE_DRAIN_DELAY: 'Expected a duration longer than zero and at most 1 day, like "60 seconds"',
        SPOKE_SNAPSHOT_INTERVAL: 'Expected a duration of 1 second to 3650 days, like "1 day"',
        SPOKE_RATE_LIMIT:
          'Expected a rate like "60 per minute": 1 to 1000000 requests in a duration of 1 second to 1 day'
      }
      for (const [variable, message] of Object.entries(messages)) {
        const values =
          variable === "SPOKE_RATE_LIMIT"
            ? [
                "0 per minute",
                "60 per 0 seconds",
                "60 per -1 seconds",
                "1000001 per minute",
                "60 per 25 hours"
              ]
            : ["0 seconds", "0", "-1 seconds", "600 weeks"]
        for (const value of values)
          expect([value, yield* problems({ [variable]: value })]).toEqual([value, { [variable]: message }])
      }
    })
  )

  it.effect("takes base addresses without a query and a fragment, because paths are added to them", () =>
    Effect.gen(function* () {
      const base = "an http or https URL"
      const expected = {
        APP_URL: base,
        API_URL: `${base} that ends in /v1`,
        OPENAI_BASE_URL: base,
        GRAPH_API_URL: base,
        TELEGRAM_API_URL: base,
        SLACK_API_URL: base,
        S3_ENDPOINT: base,
        OTEL_EXPORTER_OTLP_ENDPOINT: base
      }
      for (const [variable, what] of Object.entries(expected)) {
        const address = "https://spoke.example.com/v1"
        for (const rest of ["?of=/v1", "#/v1", "?", "#"])
          expect([rest, yield* problems({ [variable]: `${address}${rest}` })]).toEqual([
            rest,
            { [variable]: `Expected ${what}, without a query and a fragment` }
          ])
        yield* fromRecord({ [variable]: address }, false)
      }
      const providers = JSON.stringify({ local: { baseUrl: "http://localhost:11434/v1?key=1" } })
      expect(Object.keys(yield* problems({ SPOKE_PROVIDERS: providers }))).toEqual(["SPOKE_PROVIDERS"])
      const url = "https://rerank.example.com/v2/rerank?version=1"
      yield* fromRecord({ SPOKE_RERANK_URL: url, SPOKE_RERANK_MODEL: "tiny" }, false)
    })
  )

  it.effect("copies an embedded store once a second at most", () =>
    Effect.gen(function* () {
      const found = yield* problems({ SPOKE_SNAPSHOT_INTERVAL: "999 millis" })
      expect(Object.keys(found)).toEqual(["SPOKE_SNAPSHOT_INTERVAL"])
    })
  )

  it.effect("trusts no proxy unless it is told to, and never everybody", () =>
    Effect.gen(function* () {
      expect((yield* fromRecord({}, false)).trustedProxies.rules).toEqual([])
      const { trustedProxies } = yield* fromRecord(
        { SPOKE_TRUSTED_PROXIES: "10.0.0.0/8, 192.0.2.7,fd00::/8" },
        false
      )
      expect(trustedProxies.check("10.1.2.3")).toBe(true)
      expect(trustedProxies.check("192.0.2.7")).toBe(true)
      expect(trustedProxies.check("192.0.2.8")).toBe(false)
      expect(trustedProxies.check("fd00::1", "ipv6")).toBe(true)
      for (const wrong of ["proxy.internal", "10.0.0.0/33", "0.0.0.0/0", "::/0", "10.0.0.1,", "*"]) {
        const found = yield* problems({ SPOKE_TRUSTED_PROXIES: wrong })
        expect([wrong, Object.keys(found)]).toEqual([wrong, ["SPOKE_TRUSTED_PROXIES"]])
      }
    })
  )

  it.effect("demands SPOKE_SECRET with DATABASE_URL, and an API_URL that ends in /v1", () =>
    Effect.gen(function* () {
      const found = yield* problems({
        DATABASE_URL: "postgres://localhost/spoke",
        API_URL: "https://api.example.com"
      })
      expect(Object.keys(found).sort()).toEqual(["API_URL", "SPOKE_SECRET"])
    })
  )

  it.effect("takes a reranker whole or not at all, and hides its key", () =>
    Effect.gen(function* () {
      const url = "http://127.0.0.1:8080/v1/rerank"
      expect(Object.keys(yield* problems({ SPOKE_RERANK_URL: url }))).toEqual(["SPOKE_RERANK_MODEL"])
      expect(Object.keys(yield* problems({ SPOKE_RERANK_MODEL: "tiny" }))).toEqual(["SPOKE_RERANK_URL"])
      const both = { SPOKE_RERANK_URL: url, SPOKE_RERANK_MODEL: "tiny" }
      expect((yield* fromRecord(both, false)).rerank).toEqual({ url, model: "tiny", apiKey: undefined })
      const { rerank } = yield* fromRecord({ ...both, SPOKE_RERANK_API_KEY: "sk-hidden" }, false)
      expect(JSON.stringify(rerank)).not.toContain("sk-hidden")
      expect(rerank?.apiKey === undefined ? "" : Redacted.value(rerank.apiKey)).toBe("sk-hidden")
    })
  )

  it.effect(
    "checks replies by words, by the chat model where there is one, or by a service whose key it hides",
    () =>
      Effect.gen(function* () {
        const url = "http://127.0.0.1:8080/v1/check-grounding"
        expect(Object.keys(yield* problems({ SPOKE_GROUNDING_CHECKER: "model" }))).toEqual(["OPENAI_API_KEY"])
        expect(Object.keys(yield* problems({ SPOKE_GROUNDING_API_KEY: "sk-hidden" }))).toEqual([
          "SPOKE_GROUNDING_URL"
        ])
        const model = { SPOKE_GROUNDING_CHECKER: "model", OPENAI_API_KEY: "sk-hidden" }
        expect((yield* fromRecord(model, false)).grounding).toEqual({ checker: "model" })
        const own = {
          SPOKE_GROUNDING_CHECKER: "model",
          SPOKE_PROVIDERS: JSON.stringify({ local: { baseUrl: "http://localhost:11434/v1" } }),
          SPOKE_CHAT_MODEL: "local/qwen3"
        }
        expect((yield* fromRecord(own, false)).grounding).toEqual({ checker: "model" })
        const service = { SPOKE_GROUNDING_URL: url, SPOKE_GROUNDING_API_KEY: "sk-hidden" }
        const { grounding } = yield* fromRecord(service, false)
        expect(grounding).toMatchObject({ checker: "http", url })
        expect(JSON.stringify(grounding)).not.toContain("sk-hidden")
      })
  )

  it.effect("reports what one variable demands of another beside what cannot be read", () =>
    Effect.gen(function* () {
      const found = yield* problems({
        PORT: "many",
        DATABASE_URL: "postgres://localhost/spoke",
        SPOKE_EMBEDDING_MODEL: "large"
      })
      expect(Object.keys(found).sort()).toEqual(["OPENAI_API_KEY", "PORT", "SPOKE_SECRET"])
    })
  )

  it.effect("reports a plan and a model that are not defined beside what cannot be read", () =>
    Effect.gen(function* () {
      const local = JSON.stringify({ local: { baseUrl: "http://localhost:11434/v1" } })
      const wrong = {
        PORT: "many",
        SPOKE_DEFAULT_PLAN: "gold",
        SPOKE_PROVIDERS: local,
        SPOKE_CHAT_MODEL: "gpt"
      }
      expect(Object.keys(yield* problems(wrong)).sort()).toEqual([
        "PORT",
        "SPOKE_CHAT_MODEL",
        "SPOKE_DEFAULT_PLAN"
      ])
      const unread = {
        SPOKE_DEFAULT_PLAN: "gold",
        SPOKE_PLANS: "{",
        SPOKE_PROVIDERS: "{",
        SPOKE_CHAT_MODEL: "gpt"
      }
      expect(Object.keys(yield* problems(unread)).sort()).toEqual(["SPOKE_PLANS", "SPOKE_PROVIDERS"])
    })
  )

  it.effect("wants the first owner's password where no start makes one up and prints it", () =>
    Effect.gen(function* () {
      const embedded = { SPOKE_ADMIN_EMAIL: "ada@example.com" }
      expect((yield* fromRecord(embedded, false)).admin.email).toBe("ada@example.com")
      const given = {
        ...embedded,
        DATABASE_URL: "postgres://localhost/spoke",
        SPOKE_SECRET: "x".repeat(32)
      }
      expect(Object.keys(yield* problems(given))).toEqual(["SPOKE_ADMIN_PASSWORD"])
      const both = { ...given, SPOKE_ADMIN_PASSWORD: "correct horse" }
      expect(Option.isSome((yield* fromRecord(both, false)).admin.password)).toBe(true)
    })
  )

  it.effect("knows beforehand what no owner can sign in with, and does not repeat it", () =>
    Effect.gen(function* () {
      const found = yield* problems({ SPOKE_ADMIN_EMAIL: "nobody", SPOKE_ADMIN_PASSWORD: "hunter2" })
      expect(Object.keys(found).sort()).toEqual(["SPOKE_ADMIN_EMAIL", "SPOKE_ADMIN_PASSWORD"])
      expect(JSON.stringify(found)).not.toMatch(/nobody|hunter2/)
    })
  )

  it.effect("speaks responses with the provider's own address and chat-completions with any other", () =>
    Effect.gen(function* () {
      const key = { OPENAI_API_KEY: "sk-test" }
      const own = yield* fromRecord(key, false)
      const other = yield* fromRecord({ ...key, OPENAI_BASE_URL: "http://127.0.0.1:9100/v1/" }, false)
      const forced = yield* fromRecord({ ...key, SPOKE_OPENAI_API: "chat-completions" }, false)
      expect([own, other, forced].map(({ model }) => model?.api)).toEqual([
        "responses",
        "chat-completions",
        "chat-completions"
      ])
      expect(other.model?.baseUrl).toBe("http://127.0.0.1:9100/v1")
      expect(other.embedding).toEqual({ model: "text-embedding-3-small", dimensions: 1_536 })
      expect(own.model === null ? "" : Redacted.value(own.model.apiKey)).toBe("sk-test")
    })
  )

  it.effect("takes limits of retention by kind, and refuses what is none", () =>
    Effect.gen(function* () {
      const retentionOf = (SPOKE_RETENTION: string) =>
        Effect.map(fromRecord({ SPOKE_RETENTION }, false), ({ retention }) => retention)
      expect(yield* Effect.map(fromRecord({}, false), ({ retention }) => retention)).toEqual(keepsAll)
      expect(yield* retentionOf('{"runs": 90, "auditEntries": null}')).toEqual({ ...keepsAll, runs: 90 })
      for (const wrong of ["90", "{", '{"runs": 0}', '{"runs": 1.5}', '{"runs": 3651}', '{"traces": 90}'])
        expect(Object.keys(yield* problems({ SPOKE_RETENTION: wrong }))).toEqual(["SPOKE_RETENTION"])
    })
  )

  it.effect("reads a rate in words, and none where nothing is said", () =>
    Effect.gen(function* () {
      const rateOf = (SPOKE_RATE_LIMIT: string) =>
        Effect.map(fromRecord({ SPOKE_RATE_LIMIT }, false), ({ rateLimit }) => rateLimit)
      expect(yield* rateOf("")).toBe(null)
      expect(yield* rateOf("60 per minute")).toEqual({ requests: 60, window: 60 })
      expect(yield* rateOf("1000/1 hour")).toEqual({ requests: 1_000, window: 3_600 })
      expect(yield* rateOf("5 per 10 seconds")).toEqual({ requests: 5, window: 10 })
      for (const wrong of [
        "60",
        "0 per minute",
        "60 per",
        "many per minute",
        "60 per fortnight",
        "1 per 2 days"
      ]) {
        expect(Object.keys(yield* problems({ SPOKE_RATE_LIMIT: wrong }))).toEqual(["SPOKE_RATE_LIMIT"])
      }
    })
  )

  it.effect("derives every public address from APP_URL", () =>
    Effect.gen(function* () {
      const settings = yield* fromRecord({ APP_URL: "https://spoke.example.com/" }, true)
      expect(settings).toMatchObject({
        appUrl: "https://spoke.example.com",
        apiUrl: "https://spoke.example.com/v1",
        realtimeUrl: "wss://spoke.example.com/api/realtime",
        logFormat: "pretty"
      })
    })
  )

  it("knows a misspelt variable, and the one that was probably meant", () => {
    expect(
      unknownVariables({
        SPOKE_TURN_TIMOUT: "1 second",
        SPOKE_ZEBRA: "x",
        SPOKE_URL: "x",
        SPOKE_TOKEN: "x",
        SPOKE_SECRET: "x",
        PATH: "x"
      })
    ).toEqual([
      "SPOKE_TURN_TIMOUT is not a variable of Spoke; did you mean SPOKE_TURN_TIMEOUT?",
      "SPOKE_ZEBRA is not a variable of Spoke"
    ])
  })
})
