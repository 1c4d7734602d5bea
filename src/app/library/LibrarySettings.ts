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

/** Unknown settings. In plain JavaScript no compiler reports them. */
export const unknownSettings = (given: SpokeSettings) => {
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
