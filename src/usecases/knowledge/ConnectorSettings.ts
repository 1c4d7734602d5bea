/** Settings of sources with a registered reader: validated by the reader's schema, with secrets sealed separately. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { type SourceReader, SourceReaders } from "../../capabilities/SourceReaders.ts"
import * as Json from "../../domain/Json.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { SourceId, TenantId } from "../../domain/Ids.ts"
import { ConnectorConfig, type Source } from "../../domain/knowledge/Source.ts"
import type { ReaderForm } from "../../domain/knowledge/SourceReader.ts"
import { ReadingStore } from "../../store/knowledge/Readings.ts"
import { invalid, issue, refused } from "./SourceConfig.ts"

type GivenConfig = typeof ConnectorConfig.Type
type Values = Readonly<Record<string, unknown>>

/** A config as stored, and its sealed secrets; null without secrets. */
export interface SealedConfig {
  readonly config: Values
  readonly sealed: string | null
}

const Secrets = Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
const encodeSecrets = Schema.encodeSync(Secrets)
const decodeSecrets = Schema.decodeUnknownOption(Secrets)
const decodeConfig = Schema.decodeUnknownOption(ConnectorConfig)
const isConfig = Json.decodeUnknown(ConnectorConfig)

const secretsOf = ({ fields }: SourceReader) =>
  new Set(fields.flatMap(({ kind, name }) => (kind === "secret" ? [name] : [])))

/** The entries whose names are in `names` when `among` is true, else the others. */
const entriesIn = (values: Values, names: ReadonlySet<string>, isIn: boolean): Values =>
  Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name) === isIn))

const withoutNulls = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))

/** Of a source that was removed meanwhile. */
const removed = { config: null, sealed: null }

export class ConnectorSettings extends Effect.Service<ConnectorSettings>()(
  "usecases/knowledge/ConnectorSettings",
  {
    effect: Effect.gen(function* () {
      const readers = yield* SourceReaders
      const box = yield* SecretBox
      const store = yield* ReadingStore

      /** Settings of each registered reader, sorted by name. */
      const forms: ReadonlyArray<ReaderForm> = [...readers.values()]
        .map(({ description, fields, name, title }) => ({ name, title, description, fields }))
        .toSorted((one, other) => (one.name < other.name ? -1 : 1))

      const validate = (
        config: GivenConfig,
        kept: Values
      ): Effect.Effect<SealedConfig, ReturnType<typeof invalid>> =>
        Effect.gen(function* () {
          const reader = readers.get(config.reader)
          if (reader === undefined) {
            const message = `There is no such reader. Registered are ${[...readers.keys()].toSorted().join(", ")}`
            return yield* invalid([issue(["config", "reader"], message)])
          }
          const settings = yield* reader
            .checked(withoutNulls({ ...kept, ...config.settings }))
            .pipe(Effect.mapError((error) => refused(error, ["config", "settings"])))
          const names = secretsOf(reader)
          const secrets = entriesIn(settings, names, true)
          const sealed =
            Object.keys(secrets).length === 0
              ? null
              : yield* box.seal("source-secret", encodeSecrets(secrets))
          return { config: { ...config, settings: entriesIn(settings, names, false) }, sealed }
        })

      /**
       * The config of a source with its decrypted secrets, which belong to the addresses in it; no secrets when they
       * cannot be decrypted any more.
       */
      const open = (scope: { readonly tenantId: TenantId }, id: SourceId) =>
        Effect.gen(function* () {
          const { config, sealed } = Option.getOrElse(yield* store.settings(scope, id), () => removed)
          const secrets =
            sealed === null
              ? Option.some<Values>({})
              : Option.flatMap(yield* box.open("source-secret", sealed), decodeSecrets)
          return { config, secrets }
        })

      /** Validates the config of a new source. */
      const validateNew = (config: GivenConfig) => validate(config, {})

      /**
       * Validates the config that replaces a source's. Secrets that it does not name are kept, unless it changes an
       * address: a secret is only sent to the address that it was given for. Null removes a secret.
       */
      const validateChange = Effect.fn("ConnectorSettings.validateChange")(function* (
        scope: AgentScope,
        source: Source,
        next: Values
      ) {
        const config = yield* Effect.mapError(isConfig(next), (error) => refused(error, ["config"]))
        const before = decodeConfig(source.config)
        if (Option.isNone(before)) return yield* validateNew(config)
        if (before.value.reader !== config.reader) {
          return yield* invalid([
            issue(["config", "reader"], "The reader stays: add a source for another one")
          ])
        }
        const addresses = readers.get(config.reader)?.addresses ?? []
        const moved = addresses.some((name) => config.settings[name] !== before.value.settings[name])
        const { secrets } = yield* open(scope, source.id)
        const kept = moved ? {} : Option.getOrElse(secrets, (): Values => ({}))
        return yield* validate(config, kept)
      })

      return { forms, validateNew, validateChange, open, keep: store.keepSecrets } as const
    })
  }
) {}
