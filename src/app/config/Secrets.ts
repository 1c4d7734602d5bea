/**
 * The master secret and the operator token: configured, or generated once and stored in the data directory. A database
 * of another master secret is refused, because its sealed values could not be read and nothing would report it.
 */
import { randomBytes } from "node:crypto"
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { keyIdOf } from "../../capabilities/SecretBox/DerivedKeys.ts"
import * as MasterKeys from "../../store/MasterKeys.ts"
import type { Settings } from "./Config.ts"
import * as DataDirectory from "../DataDirectory.ts"

export class Secrets extends Context.Tag("app/config/Secrets")<
  Secrets,
  {
    /** The current master secret first, then earlier ones for decryption only. */
    readonly masters: readonly [Redacted.Redacted, ...ReadonlyArray<Redacted.Redacted>]
    readonly operatorToken: Option.Option<Redacted.Redacted>
  }
>() {}

/** The master secret of the database is not available. The message says how to restore it. */
export class MasterSecretError extends Schema.TaggedError<MasterSecretError>()("MasterSecretError", {
  message: Schema.String
}) {}

const minSecretBytes = 32

const random = () => Redacted.make(randomBytes(32).toString("base64url"))

export const generated = () => ({ secret: random(), operatorToken: random() })

/** The secrets file of a data directory. */
export const fileOf = (dataDir: string) => path.join(dataDir, DataDirectory.secretsFile)

const ifLost =
  "If it is lost, `spoke new-secret` creates another one: the secrets of tools and the access tokens of channels must then " +
  "be entered again. Everything else stays."

const unusable = (dataDir: string, what: string) =>
  new MasterSecretError({
    message:
      `${fileOf(dataDir)} ${what}, and the database beside it needs the master secret that it was written under. Put the file ` +
      `back from a backup of the data directory, or set SPOKE_SECRET to the \`secret\` that stood in it. ${ifLost}`
  })

/** The stored secrets of the data directory; none when there are none. */
const storedSecrets = (dataDir: string) =>
  DataDirectory.secrets.read(dataDir).pipe(
    Effect.mapError((error) =>
      error.malformed === true
        ? unusable(dataDir, "is damaged: it is not JSON with `secret` and `operatorToken`")
        : error
    ),
    Effect.filterOrFail(
      Option.match({
        onNone: () => true,
        onSome: ({ secret }) => Buffer.byteLength(Redacted.value(secret)) >= minSecretBytes
      }),
      () => unusable(dataDir, "is damaged: its `secret` is too short")
    )
  )

/** The stored secrets of the data directory. Generates them when there are none and `mayGenerate` is true. */
const storedOrGenerated = (dataDir: string, mayGenerate: boolean) =>
  Effect.gen(function* () {
    const found = yield* storedSecrets(dataDir)
    if (Option.isSome(found)) return found.value
    if (!mayGenerate) return yield* unusable(dataDir, "is missing")
    const created = generated()
    yield* DataDirectory.secrets.write(dataDir, created)
    return created
  })

const isKnownSecret = (knownKeyIds: ReadonlyArray<string>, secret: Redacted.Redacted) =>
  knownKeyIds.length === 0 || knownKeyIds.includes(keyIdOf(secret))

/** The database is opened first, because that locks the data directory. */
export const layer = ({ database, dataDir, operatorToken, secrets }: Settings) =>
  Layer.effect(
    Secrets,
    Effect.gen(function* () {
      yield* SqlClient.SqlClient
      const knownKeyIds = yield* MasterKeys.knownIds
      const [current, ...previous] = secrets
      if (current !== undefined && !secrets.some((secret) => isKnownSecret(knownKeyIds, secret))) {
        return yield* new MasterSecretError({
          message:
            "SPOKE_SECRET is not the master secret that the database was written under. Set it, or SPOKE_SECRET_PREVIOUS, to " +
            `that one${database === null ? `, or neither where it stands in ${fileOf(dataDir)}` : ""}. ${ifLost}`
        })
      }
      const mastersOf = (secret: Redacted.Redacted) =>
        Effect.as(MasterKeys.recordKeyId(keyIdOf(secret)), [secret, ...previous] as const)
      if (database !== null && current !== undefined)
        return { masters: yield* mastersOf(current), operatorToken }
      const ownSecrets = yield* storedOrGenerated(
        dataDir,
        current !== undefined || !(yield* MasterKeys.hasTenants)
      )
      if (current === undefined && !isKnownSecret(knownKeyIds, ownSecrets.secret))
        return yield* unusable(dataDir, "belongs to another database")
      return {
        masters: yield* mastersOf(current ?? ownSecrets.secret),
        operatorToken: Option.orElseSome(operatorToken, () => ownSecrets.operatorToken)
      }
    })
  )
