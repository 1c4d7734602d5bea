/**
 * OpenAPI descriptions of the public API, derived from its declarations: {@link compactDescription} without schemas,
 * {@link publicDescription} as OpenAPI 3.1 with every schema, error and example.
 */
import * as OpenApi from "@effect/platform/OpenApi"
import * as Predicate from "effect/Predicate"
import { PublicApi } from "./Api.ts"
import { examples } from "./Examples.ts"
import { mapValues, withNames } from "./NamedSchemas.ts"
import * as OpenAiError from "./OpenAiError.ts"
import * as Routes from "./Routes.ts"

const info = { title: "Spoke", version: "1" } as const

/** `:id` in OpenAPI's syntax. */
export const pathTemplate = (path: string) => path.replace(/:(\w+)/g, "{$1}")

const parameters = (path: string) =>
  Array.from(path.matchAll(/:(\w+)/g), ([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" }
  }))

const operation = ({ path, permission, statuses, summary, updatedAt }: Routes.Route) => ({
  summary,
  parameters: parameters(path),
  responses: Object.fromEntries(statuses.map((status) => [status, { description: "Success" }])),
  "x-permission": permission,
  "x-updated-at": updatedAt
})

/** Path parameters, success status codes, permissions and update timestamps; no schemas. */
export const compactDescription = () => {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of Routes.table(PublicApi)) {
    const path = pathTemplate(route.path)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return { openapi: "3.1.0", info, paths }
}

/** The framework's schema of a decode error. It is never sent: the boundary answers `VALIDATION_ERROR`. */
const decodeErrorRef = "#/components/schemas/HttpApiDecodeError"

const isDecodeError = (member: unknown) =>
  Predicate.hasProperty(member, "$ref") && member.$ref === decodeErrorRef

/** Members whose values are data and contain no schemas. */
const dataMembers = new Set(["example", "examples", "enum", "default"])

/** `node` without union members that are never sent, and without identifiers that occur more than once. */
export const toWireSchema = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.filter((member) => !isDecodeError(member)).map(toWireSchema)
  if (!Predicate.isRecord(node)) return node
  const { HttpApiDecodeError: _, ...members } = node
  return Object.fromEntries(
    Object.entries(members)
      .filter(([name, member]) => !(name === "$id" && typeof member === "string"))
      .map(([name, member]) => [name, dataMembers.has(name) ? member : toWireSchema(member)])
  )
}

const requestId = {
  description: "Returned as sent if it is valid, else generated; also in `meta.requestId`.",
  schema: { type: "string" }
}

const errorDescription = (description: string, ...codes: ReadonlyArray<string>) => ({
  description,
  content: {
    "application/json": {
      schema: {
        type: "object",
        required: ["error", "meta"],
        properties: {
          error: {
            type: "object",
            required: ["code", "message"],
            properties: {
              code: { type: "string", enum: codes },
              message: { type: "string" },
              details: { type: "object" }
            },
            additionalProperties: false
          },
          meta: {
            type: "object",
            required: ["requestId"],
            properties: { requestId: { type: "string" } },
            additionalProperties: false
          }
        },
        additionalProperties: false
      }
    }
  }
})

const seconds = { type: "integer", minimum: 1 }

/** Headers of every response to a key with a rate limit. */
const rateHeaders = {
  "ratelimit-limit": { description: "Requests that the key may send in a window.", schema: seconds },
  "ratelimit-remaining": {
    description: "Remaining requests of the window.",
    schema: { type: "integer", minimum: 0 }
  },
  "ratelimit-reset": { description: "Seconds until the next request becomes available.", schema: seconds },
  "ratelimit-policy": { description: "`<requests>;w=<seconds of the window>`", schema: { type: "string" } }
}

const tooLarge = errorDescription("The body is over the limit", "PAYLOAD_TOO_LARGE")

const exampleOf = (id: string) => examples[id] ?? {}

const eventStreamType = "text/event-stream"

/** `content` with `example` added to each media type that it fits: the text of a stream, or JSON. */
const withExample = (content: unknown, example: unknown) =>
  Predicate.isRecord(content) && example !== undefined
    ? Object.fromEntries(
        Object.entries(content).map(([type, media]) => [
          type,
          Predicate.isRecord(media) && (type === eventStreamType) === (typeof example === "string")
            ? { ...media, example }
            : media
        ])
      )
    : content

const codesOf = (node: unknown): ReadonlyArray<string> => {
  if (Array.isArray(node)) return node.flatMap(codesOf)
  if (!Predicate.isRecord(node)) return []
  const code =
    Predicate.isRecord(node["code"]) && Array.isArray(node["code"]["enum"]) ? node["code"]["enum"] : []
  return [...code.filter(Predicate.isString), ...Object.values(node).flatMap(codesOf)]
}

/** One response of an operation with its headers and example, and for a failure the possible codes. */
const describeResponse = (status: string, response: unknown, id: string) => {
  if (!Predicate.isRecord(response)) return response
  const failed = !status.startsWith("2")
  const example = exampleOf(id).answer
  const data =
    typeof example === "string" || example === undefined
      ? example
      : id.startsWith("openai.")
        ? example
        : { data: example, meta: { requestId: "req_1" } }
  return {
    ...response,
    ...(failed ? { description: [...new Set(codesOf(response))].join(", ") || response["description"] } : {}),
    headers: {
      "x-request-id": requestId,
      ...(status === "401" ? {} : rateHeaders),
      ...(status === "429" ? { "retry-after": { description: "Seconds.", schema: { type: "integer" } } } : {})
    },
    ...(response["content"] === undefined
      ? {}
      : { content: failed ? response["content"] : withExample(response["content"], data) })
  }
}

const streamType = { [eventStreamType]: { schema: { type: "string" } } }

/** What the parameters are for. The framework describes only their form. */
const parameterDescriptions: Readonly<Record<string, string>> = {
  "idempotency-key":
    "A new one for each request: a repeat with the same key has no second effect for 24 hours.",
  "x-request-id": "Your own id of the request, 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.",
  cursor: "Where the page begins: `nextCursor` of the previous page. Without it the first page."
}

const withDescription = (parameter: unknown) => {
  if (!Predicate.isRecord(parameter)) return parameter
  const text = parameterDescriptions[String(parameter["name"])]
  return text === undefined ? parameter : { ...parameter, description: text }
}

/**
 * The responses of an operation in OpenAI's format: a stream or the complete object, and errors with more fields.
 */
const inOpenAiFormat = (responses: Readonly<Record<string, unknown>>, streams: boolean) =>
  Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      if (!Predicate.isRecord(response) || !Predicate.isRecord(response["content"])) return [status, response]
      if (!status.startsWith("2")) return [status, OpenAiError.describeErrors(response, codesOf(response))]
      const content = streams ? { ...response["content"], ...streamType } : response["content"]
      return [status, { ...response, content }]
    })
  )

/** The framework's description of an operation, completed with data from the routes and the boundary. */
const completeOperation = (operation: unknown, route: Routes.Route | undefined) => {
  if (!Predicate.isRecord(operation) || route === undefined) return operation
  const id = String(operation["operationId"])
  const declaredResponses = Predicate.isRecord(operation["responses"]) ? operation["responses"] : {}
  const body = operation["requestBody"]
  const allResponses = body === undefined ? declaredResponses : { ...declaredResponses, 413: tooLarge }
  const responses = OpenAiError.isOpenAiPath(route.path)
    ? inOpenAiFormat(allResponses, body !== undefined)
    : allResponses
  return {
    ...operation,
    "x-permission": route.permission,
    "x-updated-at": route.updatedAt,
    parameters: [
      ...(Array.isArray(operation["parameters"]) ? operation["parameters"] : []),
      { name: "x-request-id", in: "header", required: false, schema: { type: "string" } }
    ].map(withDescription),
    ...(Predicate.isRecord(body)
      ? { requestBody: { ...body, content: withExample(body["content"], exampleOf(id).request) } }
      : {}),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [status, describeResponse(status, response, id)])
    )
  }
}

const securitySchemes = {
  apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
  bearer: { type: "http", scheme: "bearer" }
}

const description = [
  "Every JSON answer is `{data, meta}` or `{error, meta}`. Beside what each operation lists, an unknown path is 404",
  "`NOT_FOUND` and a wrong method 405 `METHOD_NOT_ALLOWED`."
].join(" ")

/** `components` without unused schemas. */
export const referencedSchemas = (schemas: Readonly<Record<string, unknown>>, paths: unknown) => {
  const referenced = new Map<string, unknown>()
  const visit = (node: unknown): void => {
    const text = JSON.stringify(node) ?? ""
    for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (referenced.has(name)) continue
      referenced.set(name, schemas[name])
      visit(schemas[name])
    }
  }
  visit(paths)
  return Object.fromEntries(referenced)
}

/** Replacements for schemas that the framework describes differently from their wire format. */
export const wireSchemas = {
  DateTimeUtc: { type: "string", format: "date-time", description: "ISO 8601, in UTC, with milliseconds." }
}

const transform = ({ components, info: declared, paths, ...spec }: Record<string, unknown>) => {
  const routes = new Map(
    Routes.table(PublicApi).map((route) => [
      `${route.method.toLowerCase()} ${pathTemplate(route.path)}`,
      route
    ])
  )
  const operations = mapValues(toWireSchema(paths), (item, path) =>
    mapValues(item, (operation, method) => completeOperation(operation, routes.get(`${method} ${path}`)))
  )
  const described = Predicate.isRecord(components) ? toWireSchema(components["schemas"]) : {}
  const named = withNames(operations, toWireSchema)
  const all = { ...(Predicate.isRecord(described) ? described : {}), ...wireSchemas, ...named.schemas }
  return {
    ...spec,
    info: { ...(Predicate.isRecord(declared) ? declared : {}), description },
    servers: [{ url: "/" }],
    paths: named.paths,
    components: { schemas: referencedSchemas(all, named.paths), securitySchemes },
    security: [{ apiKey: [] }, { bearer: [] }]
  }
}

/** The public API with titles and descriptions, for `/docs`. */
const Documented = PublicApi.annotate(OpenApi.Title, info.title)
  .annotate(OpenApi.Version, info.version)
  .annotate(OpenApi.Transform, transform)

/** The public API as OpenAPI 3.1. `address` is its base address, without `/v1`. */
export const publicDescription = (address = "/") => ({
  ...OpenApi.fromApi(Documented),
  servers: [{ url: address }]
})
