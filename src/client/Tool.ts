/** Tools provided by the host. */
import * as JSONSchema from "effect/JSONSchema"
import * as Schema from "effect/Schema"
import type { HostTool, ToolCallContext } from "../domain/agents/HostTool.ts"
import { JsonObject } from "../domain/Text.ts"
import { SpokeError } from "./Failure.ts"
import { issueText, type StandardInput, target } from "./StandardSchema.ts"

/** The used members of an Effect Schema. */
export interface EffectInput<Output> {
  readonly Type: Output
  readonly Encoded: unknown
  readonly Context: never
  readonly ast: unknown
}

type Input<A> = EffectInput<A> | StandardInput<A>

export interface ToolOptions<A> {
  /** Tells the model what the tool does and when to call it. */
  readonly description: string
  /** An Effect Schema, or a schema of zod, valibot or another library with Standard Schema. */
  readonly input: EffectInput<A> | StandardInput<A>
  /**
   * Returns a value that can be written as JSON, up to 256 KiB. If it throws, the model gets the error's message, and
   * the turn continues.
   */
  readonly execute: (input: A, context: ToolCallContext) => unknown
  /** JSON Schema of the input, for schemas that cannot be converted to one. */
  readonly jsonSchema?: Readonly<Record<string, unknown>> | undefined
  /** Time-out of one call in seconds, 1 to 30; default: 15. */
  readonly timeout?: number | undefined
}

/** For `createSpoke({ tools })`; created by {@link tool}. */
export type Tool = HostTool

const invalidConfig = (message: string) => new SpokeError({ code: "INVALID_CONFIG", message })

const notConvertible = (reason: string) =>
  invalidConfig(
    `The input schema of a tool cannot be written as JSON Schema (${reason}): pass its JSON Schema as jsonSchema.`
  )

/** The types exclude schemas that need services. */
const isEffectSchema = <A>(input: Input<A>): input is Input<A> & Schema.Schema<A, unknown> =>
  Schema.isSchema(input)

const isStandardSchema = <A>(input: Input<A>): input is StandardInput<A> => "~standard" in input

const isJsonObject = Schema.is(JsonObject)

const convertOrThrow = <A>(convert: () => A, reason: string): A => {
  try {
    return convert()
  } catch {
    throw notConvertible(reason)
  }
}

const toStandardSchema = <A>(input: Input<A>): StandardInput<A> => {
  if (isEffectSchema(input)) return Schema.standardSchemaV1(input)
  if (isStandardSchema(input)) return input
  throw invalidConfig("The input of a tool must be an Effect Schema or a Standard Schema.")
}

const toJsonSchema = <A>(input: Input<A>): unknown => {
  if (isEffectSchema(input))
    return convertOrThrow(() => JSONSchema.make(input), "a part of it has no JSON form")
  const { jsonSchema, vendor } = toStandardSchema(input)["~standard"]
  if (jsonSchema === undefined) throw notConvertible(`${vendor} does not support it`)
  return convertOrThrow(() => jsonSchema.input({ target }), `${vendor} has no JSON form for a part of it`)
}

/** Schemas with a name are a reference at the top, which providers refuse. Inner references stay. */
const withoutReference = ({ $ref, ...schema }: JsonObject): JsonObject => {
  const [, group = "", name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/u.exec(String($ref)) ?? []
  const definitions = schema[group]
  const definition = isJsonObject(definitions) ? definitions[name] : undefined
  return isJsonObject(definition) ? { ...definition, ...schema } : schema
}

/** The schema of `parameters`, which providers require to be of type `object`. */
const parametersOf = (value: unknown): JsonObject => {
  const plain: unknown = convertOrThrow(() => JSON.parse(JSON.stringify(value)), "it is no JSON")
  const { $schema: _, ...parameters } = isJsonObject(plain) ? withoutReference(plain) : {}
  if (parameters["type"] !== "object") {
    throw invalidConfig('The input of a tool must be an object: its JSON Schema needs "type": "object".')
  }
  return parameters
}

/**
 * Creates a tool from a function of the host. Agents with its name in their `tools` may call it. Throws a `SpokeError`.
 */
export const tool = <A>({ description, execute, input, jsonSchema, timeout = 15 }: ToolOptions<A>): Tool => {
  if (typeof description !== "string" || description.length > 4_000) {
    throw invalidConfig("The description of a tool must be a text of at most 4,000 characters.")
  }
  if (!Number.isFinite(timeout) || timeout < 1 || timeout > 30) {
    throw invalidConfig("The timeout of a tool must be 1 to 30 seconds.")
  }
  const parameters = parametersOf(jsonSchema ?? toJsonSchema(input))
  const standard = toStandardSchema(input)["~standard"]
  return {
    description,
    parameters,
    timeoutMillis: timeout * 1_000,
    call: async (value, context) => {
      const decoded = await standard.validate(value)
      return decoded.issues === undefined
        ? { answer: await execute(decoded.value, context) }
        : { invalid: decoded.issues.map(issueText) }
    }
  }
}

/** An Effect Schema in the form of Standard Schema, with its JSON Schema. */
export const standard = <A>(schema: EffectInput<A> | StandardInput<A>): StandardInput<A> => {
  if (!isEffectSchema(schema)) return toStandardSchema(schema)
  const { "~standard": described } = Schema.standardSchemaV1(schema)
  const input = () => ({ ...JSONSchema.make(schema) })
  return { "~standard": { ...described, jsonSchema: { input } } }
}
