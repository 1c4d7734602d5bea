/**
 * Names for the schemas of the description, so that generated clients have them. A body is named after its operation, a
 * failure after its code, and shared schemas by the list below.
 */
import * as OpenApiJsonSchema from "@effect/platform/OpenApiJsonSchema"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { RunEvent } from "../domain/chat/AgentRun.ts"
import { Citation, Media } from "../domain/chat/ChatTurn.ts"
import { Conversation, Message } from "../domain/conversations/Conversation.ts"
import { Chunk, RetrieveFilter } from "../domain/knowledge/Chunk.ts"
import { IngestionJob, LatestJob } from "../domain/knowledge/Source.ts"
import { SourceItem } from "./public/knowledge/SourcesApi.ts"

/** Schemas that several operations share. */
const shared: Readonly<Record<string, Schema.Schema.AnyNoContext>> = {
  Chunk,
  Citation,
  Conversation: Schema.Struct(Conversation.fields),
  IngestionJob: Schema.Struct(IngestionJob.fields),
  LatestJob,
  Media,
  Message: Schema.Struct(Message.fields),
  RetrieveFilter,
  RunEvent,
  Source: SourceItem
}

/** `chat.complete` and `NOT_FOUND` in the form of type names. */
const pascalCase = (name: string) =>
  name
    .split(/[._]/u)
    .map((word) => (word === word.toUpperCase() ? word.toLowerCase() : word))
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")

const valueAt = (node: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((inner, name) => (Predicate.isRecord(inner) ? inner[name] : undefined), node)

/** The code of a failure's envelope. Undefined for other schemas, such as OpenAI's errors, which have more fields. */
const codeOf = (node: unknown): string | undefined => {
  if (valueAt(node, "properties", "error", "properties", "type") !== undefined) return undefined
  const codes = valueAt(node, "properties", "error", "properties", "code", "enum")
  return Array.isArray(codes) && codes.length === 1 ? String(codes[0]) : undefined
}

/** The members of `node` with other values; none if it is not a record. */
export const mapValues = (node: unknown, each: (value: unknown, name: string) => unknown) =>
  Predicate.isRecord(node)
    ? Object.fromEntries(Object.entries(node).map(([name, value]) => [name, each(value, name)]))
    : {}

/**
 * `paths` with references instead of schemas, and the referenced schemas. `clean` removes parts that are never sent.
 */
export const withNames = (paths: Readonly<Record<string, unknown>>, clean: (node: unknown) => unknown) => {
  const names = new Map(
    Object.entries(shared).map(([name, schema]) => [
      JSON.stringify(clean(OpenApiJsonSchema.makeWithDefs(schema, { defs: {} }))),
      name
    ])
  )
  const schemas: Record<string, unknown> = {}

  /** Stores `node` under `name` and returns a reference to it. The schemas inside it are already named. */
  const stored = (name: string, node: unknown) => {
    schemas[name] = node
    return { $ref: `#/components/schemas/${name}` }
  }

  const withReferences = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(withReferences)
    if (!Predicate.isRecord(node)) return node
    const inner = () => mapValues(node, withReferences)
    const code = codeOf(node)
    if (code !== undefined) return stored(pascalCase(code).replace(/(?:Error)?$/u, "Error"), inner())
    const sharedName = node["type"] === "object" ? names.get(JSON.stringify(node)) : undefined
    return sharedName === undefined ? inner() : stored(sharedName, inner())
  }

  const isObject = (node: unknown) => valueAt(node, "type") === "object"

  /** Applies `name` to the JSON schema in `content`. */
  const inContent = (content: unknown, name: (schema: unknown) => unknown) =>
    mapValues(content, (media, type) => {
      if (type !== "application/json" || !Predicate.isRecord(media)) return media
      return { ...media, schema: name(withReferences(media["schema"])) }
    })

  const namedResponses = (responses: unknown, id: string) =>
    mapValues(responses, (response, status) =>
      Predicate.isRecord(response)
        ? {
            ...response,
            ...(response["content"] === undefined
              ? {}
              : {
                  content: inContent(response["content"], (schema) => {
                    const data = valueAt(schema, "properties", "data")
                    if (!status.startsWith("2") || !Predicate.isRecord(schema) || !isObject(data))
                      return schema
                    const properties = {
                      ...(Predicate.isRecord(schema["properties"]) ? schema["properties"] : {}),
                      data: stored(`${id}Data`, data)
                    }
                    return { ...schema, properties }
                  })
                })
          }
        : response
    )

  const operation = (node: unknown) => {
    if (!Predicate.isRecord(node)) return node
    const id = pascalCase(String(node["operationId"]))
    const body = node["requestBody"]
    return {
      ...node,
      ...(Predicate.isRecord(body)
        ? {
            requestBody: {
              ...body,
              content: inContent(body["content"], (schema) => stored(`${id}Request`, schema))
            }
          }
        : {}),
      responses: namedResponses(node["responses"], id)
    }
  }

  return { paths: mapValues(paths, (item) => mapValues(item, operation)), schemas }
}
