/** `spoke doctor`: checks what the server needs and says what to mend; exit code 1 when something must be. */
import * as Command from "@effect/cli/Command"
import * as SqlClient from "@effect/sql/SqlClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { ArtifactStore, refOf } from "../../capabilities/ArtifactStore.ts"
import { migrate } from "../../store/Database.ts"
import { fromEnvironment, type Settings } from "../Config.ts"
import * as DataDirectory from "../DataDirectory.ts"
import { artifactStore, database } from "../Live.ts"
import * as Package from "../Package.ts"
import { ping } from "../Redis.ts"
import { chooseVector } from "../Vector.ts"
import { CommandFailed } from "./Connection.ts"

/** One finding: `bad` must be mended, `note` is worth knowing. */
interface Finding {
  readonly verdict: "ok" | "note" | "bad"
  readonly what: string
  readonly words: string
}

const ok = (what: string, words: string): Finding => ({ verdict: "ok", what, words })
const note = (what: string, words: string): Finding => ({ verdict: "note", what, words })
const bad = (what: string, words: string): Finding => ({ verdict: "bad", what, words })

const patience = "10 seconds"
/** The address of no bytes at all. */
const nobodys = refOf(new Uint8Array(0))

/** An embedded database in use is healthy when its server says so: nobody else may open it. */
const running = (settings: Settings) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const kept = yield* DataDirectory.credentials.read(settings.dataDir)
    const url = Option.match(kept, { onNone: () => settings.appUrl, onSome: (found) => found.url })
    const { status } = yield* client.get(`${url}/readyz`).pipe(Effect.timeout(patience))
    return status === 200
      ? ok("database", `embedded, in use by the server at ${url}, which is ready`)
      : bad("database", `embedded, in use by the server at ${url}, which is not ready (${status})`)
  }).pipe(
    Effect.orElseSucceed(() =>
      bad("database", "embedded, held by another process that does not answer. End that process first.")
    )
  )

const openDatabase = (settings: Settings) =>
  Effect.gen(function* () {
    const applied = yield* migrate(Package.migrations)
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ readonly version: string; readonly waiting: number; readonly failed: number }>`
      select current_setting('server_version') as version,
        (select count(*)::int from queue_jobs where state = 'waiting') as waiting,
        (select count(*)::int from queue_jobs where state = 'failed') as failed`
    const vector = yield* Effect.either(chooseVector(settings))
    const migrated = applied.length === 0 ? "migrated" : `migrated just now (${applied.length})`
    const failed = row?.failed ?? 0
    return [
      ok(
        "database",
        `${settings.database === null ? "embedded" : "PostgreSQL"} ${row?.version ?? ""}, ${migrated}`
      ),
      Either.match(vector, {
        onLeft: ({ message }) => bad("search", message),
        onRight: ({ backend, missing, why }) => (missing ? note : ok)("search", `${backend}: ${why}`)
      }),
      failed === 0
        ? ok("queue", `${row?.waiting ?? 0} jobs wait, none has failed`)
        : note("queue", `${row?.waiting ?? 0} jobs wait, ${failed} have failed; their sources say why`)
    ]
  }).pipe(Effect.provide(database(settings)))

const checkDatabase = (settings: Settings) =>
  openDatabase(settings).pipe(
    Effect.catchTag("DataDirectoryLocked", () => Effect.map(running(settings), (finding) => [finding])),
    Effect.catchAll(({ message }) => Effect.succeed([bad("database", message)]))
  )

/** Without Redis nothing is lost; whoever configured it wants to know all the same. */
const checkRedis = ({ redis }: Settings) =>
  redis === null
    ? Effect.succeed([])
    : Effect.gen(function* () {
        const { connect } = yield* Effect.promise(() => import("../RedisBackends.ts"))
        yield* Effect.flatMap(connect(redis), ping)
        return [ok("redis", "answers")]
      }).pipe(
        Effect.scoped,
        Effect.orElseSucceed(() => [bad("redis", "does not answer at REDIS_URL")])
      )

const checkModel = ({ model }: Settings) =>
  Effect.gen(function* () {
    if (model === null)
      return note("model", "none: replies are extracts. Set OPENAI_API_KEY to have them written.")
    const client = yield* HttpClient.HttpClient
    const request = HttpClientRequest.get(`${model.baseUrl}/models`).pipe(
      HttpClientRequest.bearerToken(Redacted.value(model.apiKey))
    )
    const { status } = yield* client.execute(request).pipe(Effect.timeout(patience))
    if (status === 401 || status === 403) return bad("model", "the provider refuses OPENAI_API_KEY")
    if (status >= 500) return bad("model", `the provider answers ${status}`)
    return ok("model", `${model.chatModel} at ${model.baseUrl} (${model.api})`)
  }).pipe(Effect.orElseSucceed(() => bad("model", "the provider at OPENAI_BASE_URL does not answer")))

/** Asks for an original that nobody has: whoever can say so can be read. */
const checkArtifacts = (settings: Settings) =>
  Effect.gen(function* () {
    const where = settings.artifacts === null ? "the data directory" : `bucket ${settings.artifacts.bucket}`
    yield* (yield* ArtifactStore).get(nobodys)
    return ok("originals", `kept in ${where}`)
  }).pipe(
    Effect.provide(artifactStore(settings)),
    Effect.timeoutFail({ duration: patience, onTimeout: () => new CommandFailed({ message: "No answer." }) }),
    Effect.catchAll(({ message }) => Effect.succeed(bad("originals", message)))
  )

const marks = { ok: "ok  ", note: "note", bad: "BAD " } as const

export const doctor = Command.make("doctor", {}, () =>
  Effect.gen(function* () {
    const configured = yield* Effect.either(fromEnvironment())
    if (Either.isLeft(configured)) {
      return yield* new CommandFailed({ message: configured.left.message })
    }
    const settings = configured.right
    const findings = [
      ok("configuration", "every variable is well formed"),
      ...(yield* checkDatabase(settings)),
      ...(yield* checkRedis(settings)),
      yield* checkArtifacts(settings),
      yield* checkModel(settings)
    ]
    yield* Effect.forEach(findings, ({ verdict, what, words }) =>
      Console.log(`${marks[verdict]}  ${what.padEnd(14)} ${words}`)
    )
    const wrong = findings.filter(({ verdict }) => verdict === "bad")
    if (wrong.length > 0) {
      return yield* new CommandFailed({ message: `Mend ${wrong.map(({ what }) => what).join(", ")} first.` })
    }
  })
).pipe(Command.withDescription("Check configuration, database, queue and model, and say what to mend"))
