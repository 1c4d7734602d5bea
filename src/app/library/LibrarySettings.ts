/** Converts the settings of the library to settings of the service. */
import * as Effect from "effect/Effect"
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

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** Settings without an environment variable. */
const settingsWithoutVariable = [
  "channels",
  "env",
  "log",
  "model",
  "readers",
  "tenant",
  "tools",
  "workers"
] as const satisfies ReadonlyArray<keyof SpokeSettings>

/** Unknown settings. */
const unknownSettings = (given: Readonly<Record<string, unknown>>) => {
  const named = Object.keys(variableOf).map((name) => name.split("."))
  const known = new Set([...named.flatMap(([name = ""]) => name), ...settingsWithoutVariable])
  return Object.entries(given).flatMap(([name, value]) => {
    if (!known.has(name)) return [{ path: [name], message: unknownField([], name, known) }]
    const groupFields = named.flatMap(([group, field]) =>
      group === name && field !== undefined ? [field] : []
    )
    return groupFields.length === 0 || !isRecord(value)
      ? []
      : Object.keys(value)
          .filter((field) => !groupFields.includes(field))
          .map((field) => ({ path: [name, field], message: unknownField([name], field, groupFields) }))
  })
}

interface Form {
  readonly words: string
  readonly fits: (value: unknown) => boolean
}

const isFunction = (value: unknown) => typeof value === "function"
const isText = (value: unknown) => typeof value === "string"
const text: Form = { words: "a text", fits: isText }
const object: Form = { words: "an object", fits: isRecord }

/** Forms of the settings that are no texts. */
const forms: Readonly<Record<string, Form>> = {
  admin: object,
  channels: object,
  env: object,
  fetchAllow: { words: "an array of texts", fits: (value) => Array.isArray(value) && value.every(isText) },
  log: { words: "a function", fits: isFunction },
  model: {
    words: "a model of the AI SDK",
    fits: (value) => isRecord(value) && isFunction(value["doStream"])
  },
  openai: object,
  "openai.embeddingDimensions": { words: "a number", fits: (value) => typeof value === "number" },
  readers: object,
  tools: object,
  workers: { words: "true or false", fits: (value) => typeof value === "boolean" }
}

/** Forms of every entry of these settings. */
const entryForms: Readonly<Record<string, Form>> = {
  channels: {
    words: "a channel made by channel()",
    fits: (value) => isRecord(value) && isFunction(value["send"])
  },
  env: { words: "a text", fits: (value) => value === undefined || isText(value) },
  readers: {
    words: "a reader made by reader()",
    fits: (value) => isRecord(value) && isFunction(value["read"])
  },
  tools: { words: "a tool made by tool()", fits: (value) => isRecord(value) && isFunction(value["call"]) }
}

/** Required fields of optional groups, with the variable in `env` that is enough. */
const requiredFields = [
  ["openai", "apiKey", variableOf["openai.apiKey"]],
  ["admin", "password", variableOf["admin.password"]]
] as const

const problemAt = (path: ReadonlyArray<string>, message: string) => ({
  path,
  message: `${path.join(".")}: ${message}`
})

const entriesOf = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  isRecord(value) ? Object.entries(value) : []

/** Settings and fields of groups that have another form than their type says. */
const settingsOfWrongForm = (given: Readonly<Record<string, unknown>>) => {
  const groups = ["admin", "openai"].flatMap((group) =>
    entriesOf(given[group]).map(([field, value]) => [[group, field], value] as const)
  )
  const named = [
    ...Object.entries(given).map(([name, value]) => [[name], value] as const),
    ...groups
  ].flatMap(([path, value]) => {
    const { fits, words } = forms[path.join(".")] ?? text
    return value === undefined || fits(value) ? [] : [problemAt(path, `Expected ${words}`)]
  })
  const inEntries = Object.entries(entryForms).flatMap(([name, { fits, words }]) =>
    entriesOf(given[name]).flatMap(([entry, value]) =>
      fits(value) ? [] : [problemAt([name, entry], `Expected ${words}`)]
    )
  )
  const env = isRecord(given["env"]) ? given["env"] : {}
  const missing = requiredFields.flatMap(([group, field, variable]) => {
    const fields = given[group]
    return isRecord(fields) && fields[field] === undefined && env[variable] === undefined
      ? [problemAt([group, field], "Required")]
      : []
  })
  return [...named, ...inEntries, ...missing]
}

/** Unknown settings, else those of another form than their types. In plain JavaScript no compiler reports them. */
export const malformed = (given: unknown) => {
  if (!isRecord(given)) return [{ path: [], message: "Expected an object" }]
  const unknown = unknownSettings(given)
  return unknown.length > 0 ? unknown : settingsOfWrongForm(given)
}

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
    problems.map(({ message, variable }) => ({ path: [settingOf(variable)], message }))
  )
}
