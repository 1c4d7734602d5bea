/** The master secret and the operator token: configured, or generated once and kept in the data directory. */
import { randomBytes } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Settings } from "./Config.ts"
import * as DataDirectory from "./DataDirectory.ts"

export class Secrets extends Context.Tag("app/Secrets")<
  Secrets,
  {
    /** The current master secret first, then those that are still good for reading. */
    readonly masters: readonly [Redacted.Redacted, ...ReadonlyArray<Redacted.Redacted>]
    readonly operatorToken: Option.Option<Redacted.Redacted>
  }
>() {}

const random = () => Redacted.make(randomBytes(32).toString("base64url"))

/** What the data directory keeps; made when it keeps nothing yet. */
const kept = (dataDir: string) =>
  Effect.gen(function* () {
    const found = yield* DataDirectory.secrets.read(dataDir)
    if (Option.isSome(found)) return found.value
    const made = { secret: random(), operatorToken: random() }
    yield* DataDirectory.secrets.write(dataDir, made)
    return made
  })

/** The database comes first: opening it takes the lock of the data directory. */
export const layer = ({ database, dataDir, operatorToken, secrets }: Settings) =>
  Layer.effect(
    Secrets,
    Effect.gen(function* () {
      yield* SqlClient.SqlClient
      const [current, ...previous] = secrets
      if (database !== null && current !== undefined)
        return { masters: [current, ...previous], operatorToken }
      const own = yield* kept(dataDir)
      return {
        masters: current === undefined ? [own.secret, ...previous] : [current, ...previous],
        operatorToken: Option.orElseSome(operatorToken, () => own.operatorToken)
      }
    })
  )
