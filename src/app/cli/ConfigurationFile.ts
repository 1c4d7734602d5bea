/** Reads a configuration file: JSON, YAML or a module. Referenced texts and secrets are inserted. */
import * as path from "node:path"
import * as process from "node:process"
import { pathToFileURL } from "node:url"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { isError } from "../../domain/ThrownErrors.ts"
import { environment } from "../config/Config.ts"
import { CommandFailed } from "./Connection.ts"
import * as Files from "./input/Files.ts"
import { MiB } from "../../domain/Bytes.ts"

const failed = (message: string) => new CommandFailed({ message })

const causeText = (cause: unknown) => (isError(cause) ? `: ${cause.message}` : "")

/** Maximum bytes of the file, and of one that it refers to. */
const maxFileBytes = 64 * MiB

const readText = (file: string) => Files.readText(file, maxFileBytes, failed)

const json = (file: string) =>
  Effect.flatMap(readText(file), (text) =>
    Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: (cause) => failed(`${file} is not valid JSON${causeText(cause)}.`)
    })
  )

const yaml = (file: string) =>
  Effect.flatMap(readText(file), (text) =>
    Effect.tryPromise({
      try: async (): Promise<unknown> => (await import("./Yaml.ts")).parseYaml(text),
      catch: (cause) => failed(`${file} is not valid YAML${causeText(cause)}.`)
    })
  )

/** Maximum time that a module may take to be loaded, with what its code awaits. */
const maxLoadTime = Duration.minutes(1)

/** The default export of a module. */
const module = (file: string) =>
  Effect.tryPromise({
    try: async (): Promise<unknown> => {
      const loaded: unknown = await import(pathToFileURL(file).href)
      return Predicate.hasProperty(loaded, "default") ? loaded.default : undefined
    },
    catch: (cause) => failed(`${file} cannot be loaded${causeText(cause)}.`)
  }).pipe(
    Effect.timeoutFail({
      duration: maxLoadTime,
      onTimeout: () =>
        failed(`${file} was not loaded within ${Duration.format(maxLoadTime)}: what does its code wait for?`)
    })
  )

const typeScript = (file: string) =>
  Predicate.hasProperty(process.features, "typescript") && process.features.typescript !== false
    ? module(file)
    : failed(
        `This version of Node does not load TypeScript (22.18 and newer do). Name ${path.basename(file)} .mjs, or write JSON or YAML.`
      )

const readers: Readonly<Record<string, (file: string) => Effect.Effect<unknown, CommandFailed>>> = {
  ".yaml": yaml,
  ".yml": yaml,
  ".js": module,
  ".mjs": module,
  ".ts": typeScript,
  ".mts": typeScript
}

type Resolve = (value: unknown, at: string) => Effect.Effect<unknown, CommandFailed>

/** `value` with `resolve` applied to every value at `place`, where `*` matches any name. */
const resolveAt = (
  value: unknown,
  [step, ...rest]: ReadonlyArray<string>,
  resolve: Resolve,
  from = ""
): Effect.Effect<unknown, CommandFailed> => {
  if (step === undefined) return resolve(value, from)
  if (!Predicate.isRecord(value)) return Effect.succeed(value)
  return Effect.map(
    Effect.forEach(Object.entries(value), ([name, member]) =>
      Effect.map(
        step === "*" || step === name
          ? resolveAt(member, rest, resolve, from === "" ? name : `${from}.${name}`)
          : Effect.succeed(member),
        (resolved) => [name, resolved] as const
      )
    ),
    (entries) => Object.fromEntries(entries)
  )
}

const referenceOf = (value: unknown, kind: "file" | "env") =>
  Predicate.isRecord(value) && Object.keys(value).length === 1 && typeof value[kind] === "string"
    ? value[kind]
    : undefined

/** Resolves `{"file": "prompt.md"}`, relative to the configuration file. */
const resolveText =
  (folder: string): Resolve =>
  (value) => {
    const file = referenceOf(value, "file")
    return file === undefined ? Effect.succeed(value) : readText(path.resolve(folder, file))
  }

/** Resolves `{"env": "NAME"}` or `{"file": "secret.txt"}`. A secret is never written in the configuration file. */
const resolveSecret =
  (folder: string): Resolve =>
  (value, place) => {
    const variable = referenceOf(value, "env")
    if (variable !== undefined) {
      return Effect.filterOrFail(
        Effect.map(environment, (variables) => variables[variable] ?? ""),
        (secret) => secret !== "",
        () => failed(`${place}: ${variable} is not set.`)
      )
    }
    const file = referenceOf(value, "file")
    if (file === undefined) {
      return failed(`${place}: a secret is named by reference, {"env": "NAME"} or {"file": "secret.txt"}.`)
    }
    return Effect.map(readText(path.resolve(folder, file)), (text) => text.trim())
  }

const textPlaces = [
  ["agents", "*", "instructions"],
  ["agents", "*", "greeting"],
  ["agents", "*", "sources", "*", "config", "text"]
]
const secretPlaces = [
  ["agents", "*", "remoteTools", "*", "auth", "secret"],
  ["agents", "*", "channels", "*", "accessToken"],
  ["agents", "*", "channels", "*", "secrets", "*"]
]

/** The file with its references resolved. The server validates everything else. */
export const load = Effect.fn("ConfigurationFile.load")(function* (file: string) {
  const absolute = path.resolve(file)
  const read = readers[path.extname(file).toLowerCase()] ?? json
  const found = yield* read(absolute)
  if (!Predicate.isRecord(found) || !Predicate.isRecord(found["agents"])) {
    return yield* failed(`${file} has no agents. Expected {"agents": {"<name>": {…}}}.`)
  }
  const folder = path.dirname(absolute)
  let config: unknown = found
  for (const place of textPlaces) config = yield* resolveAt(config, place, resolveText(folder))
  for (const place of secretPlaces) config = yield* resolveAt(config, place, resolveSecret(folder))
  return config
})
