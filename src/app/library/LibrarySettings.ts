/** Converts the settings of the library to settings of the service. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { isChannelName } from "../../capabilities/ChannelAdapters.ts"
import { ToolName } from "../../domain/agents/Tool.ts"
import { ReaderName } from "../../domain/knowledge/SourceReader.ts"
import { unknownField } from "../../domain/UnknownField.ts"
import type { LibrarySettings, SpokeSettings } from "../../client/Spoke.ts"
import { fromRecord } from "../config/Config.ts"

const variableOf = {
  dataDir: "SPOKE_DATA_DIR",
  databaseUrl: "DATABASE_URL",
  redisUrl: "REDIS_URL",
  "openai.apiKey": "OPENAI_API_KEY",
  "openai.baseUrl": "OPENAI_BASE_URL",
  "openai.api": "SPOKE_OPENAI_API",
  "openai.chatModel": "SPOKE_CHAT_MODEL",
  "openai.embeddingModel": "SPOKE_EMBEDDING_MODEL",
  "openai.embeddingDimensions": "SPOKE_EMBEDDING_DIMENSIONS",
  secret: "SPOKE_SECRET",
  operatorToken: "SPOKE_OPERATOR_TOKEN",
  "admin.email": "SPOKE_ADMIN_EMAIL",
  "admin.password": "SPOKE_ADMIN_PASSWORD",
  appUrl: "APP_URL",
  fetchAllow: "SPOKE_FETCH_ALLOW"
} as const

type GivenSettings = { readonly [K in keyof typeof variableOf]: string | undefined }

const givenOf = ({ admin, fetchAllow, openai, ...given }: LibrarySettings): GivenSettings => ({
  dataDir: given.dataDir,
  databaseUrl: given.databaseUrl,
  redisUrl: given.redisUrl,
  "openai.apiKey": openai?.apiKey,
  "openai.baseUrl": openai?.baseUrl,
  "openai.api": openai?.api,
  "openai.chatModel": openai?.chatModel,
  "openai.embeddingModel": openai?.embeddingModel,
  "openai.embeddingDimensions": openai?.embeddingDimensions?.toString(),
  secret: given.secret,
  operatorToken: given.operatorToken,
  "admin.email": admin?.email,
  "admin.password": admin?.password,
  appUrl: given.appUrl,
  fetchAllow: fetchAllow?.join(",")
})

/** The library's name for the setting of `variable`. */
const settingOf = (variable: string): string =>
  Object.entries(variableOf).find(([, name]) => name === variable)?.[0] ?? variable

const text = Schema.String.annotations({ message: () => "Expected a text" })

const hasFunction = (value: unknown, name: string): boolean =>
  Predicate.hasProperty(value, name) && Predicate.isFunction(value[name])

/** Named fields, all optional. */
const group = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.partialWith(Schema.Struct(fields), { exact: true }).annotations({
    message: () => "Expected an object"
  })

const entries = <A, I>(value: Schema.Schema<A, I>) =>
  Schema.Record({ key: Schema.String, value }).annotations({ message: () => "Expected an object" })

/** Extensions by host code, by names that `isName` accepts. Each has the function `method`. */
const extensions = (method: string, words: string, isName: (name: string) => boolean, nameRule: string) =>
  entries(
    Schema.Unknown.pipe(Schema.filter((value) => hasFunction(value, method) || `Expected ${words}`))
  ).pipe(Schema.filter((given) => Object.keys(given).every(isName) || nameRule))

const groups = {
  openai: {
    apiKey: text,
    baseUrl: text,
    api: text,
    chatModel: text,
    embeddingModel: text,
    embeddingDimensions: Schema.Number.annotations({ message: () => "Expected a number" })
  },
  admin: { email: text, password: text }
}

const fields = {
  dataDir: text,
  databaseUrl: text,
  redisUrl: text,
  openai: group(groups.openai),
  secret: text,
  operatorToken: text,
  admin: group(groups.admin),
  appUrl: text,
  fetchAllow: Schema.Array(text).annotations({ message: () => "Expected an array of texts" }),
  env: entries(text),
  tenant: text,
  workers: Schema.Boolean.annotations({ message: () => "Expected true or false" }),
  model: Schema.Unknown.pipe(
    Schema.filter((value) => hasFunction(value, "doStream") || "Expected a model of the AI SDK")
  ),
  tools: extensions(
    "call",
    "a tool made by tool()",
    Schema.is(ToolName),
    "A tool's name must be a letter, then up to 63 letters, digits, _ or -"
  ),
  readers: extensions(
    "read",
    "a reader made by reader()",
    Schema.is(ReaderName),
    "A reader's name must be a lower-case letter, then up to 63 lower-case letters, digits or -"
  ),
  channels: extensions(
    "send",
    "a channel made by channel()",
    isChannelName,
    "A channel's name must be a lower-case letter, then up to 31 lower-case letters, digits or -, and not one of api, widget, test, billing"
  ),
  log: Schema.Unknown.pipe(Schema.filter((value) => Predicate.isFunction(value) || "Expected a function"))
} satisfies Readonly<Record<keyof SpokeSettings, Schema.Schema.Any>>

/** Required fields of optional groups, which their variable in `env` also provides. */
const requiredFields = [
  ["openai", "apiKey", variableOf["openai.apiKey"]],
  ["admin", "password", variableOf["admin.password"]]
] as const

/** The forms of all settings. In plain JavaScript no compiler checks them. */
const Settings = group(fields).pipe(
  Schema.filter((given) =>
    requiredFields.flatMap(([name, field, variable]) => {
      const values: Readonly<Record<string, unknown>> | undefined = given[name]
      return values !== undefined && values[field] === undefined && given.env?.[variable] === undefined
        ? [{ path: [name, field], message: "Required" }]
        : []
    })
  )
)

const validate = Schema.validateEither(Settings, { errors: "all", onExcessProperty: "error" })

/** `given` without fields that are undefined, at the top and in groups. */
const withoutUndefined = (given: unknown): unknown => {
  if (!Predicate.isRecord(given)) return given
  const definedIn = (value: object) =>
    Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined))
  return definedIn({
    ...given,
    ...Object.fromEntries(
      ["admin", "env", "openai"].flatMap((name) => {
        const value = given[name]
        return Predicate.isRecord(value) ? [[name, definedIn(value)]] : []
      })
    )
  })
}

const fieldsAt: Readonly<Record<string, object>> = { "": fields, ...groups }

/** Every problem of the forms of `given`, by the path of its setting. */
export const problems = (given: unknown) =>
  Either.match(validate(withoutUndefined(given)), {
    onRight: () => [],
    onLeft: (error) =>
      ParseResult.ArrayFormatter.formatErrorSync(error).map((issue) => {
        const path = issue.path.map(String)
        const parent = path.slice(0, -1)
        if (issue._tag === "Unexpected") {
          const known = Object.keys(fieldsAt[parent.join(".")] ?? {})
          return { path, message: unknownField(parent, path.at(-1) ?? "", known) }
        }
        return { path, message: path.length === 0 ? issue.message : `${path.join(".")}: ${issue.message}` }
      })
  })

/** The settings. Fails with `InvalidConfig`, which has every problem by the name of its setting. */
export const read = (given: LibrarySettings) => {
  const givenEntries = Object.entries(givenOf(given)).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const]
  )
  const named: Readonly<Record<string, string>> = variableOf
  const record = {
    ...given.env,
    ...Object.fromEntries(givenEntries.map(([name, value]) => [named[name] ?? name, value]))
  }
  return Effect.mapError(fromRecord(record, false), ({ problems }) =>
    problems.map(({ message, variable }) => {
      const setting = settingOf(variable)
      return { path: [setting], message: `${setting}: ${message}` }
    })
  )
}
