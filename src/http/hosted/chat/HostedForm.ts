/** Reads a hosted turn: JSON, or a form whose files are read as a stream. */
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { invalidField } from "../../../domain/Errors.ts"
import * as Json from "../../../domain/Json.ts"
import { HostedTurnRequest } from "../../../domain/chat/Widget.ts"
import * as Issues from "../../server/Issues.ts"
import * as Upload from "../../server/Upload.ts"

/** Form fields that are plain text. An identity may also be JSON. */
const textFields: ReadonlyArray<string> = [
  "message",
  "sessionId",
  "agentId",
  "conversationId",
  "retryOf",
  "replaces",
  "endUserId",
  "externalEndUserId"
]

export const isForm = ({ headers }: HttpServerRequest.HttpServerRequest) =>
  /^multipart\/form-data\b/iu.test(headers["content-type"] ?? "")

const asJson = (name: string, text: string) =>
  Effect.mapError(Json.parse(text), ({ message }) => invalidField([name], `Expected JSON: ${message}`))

const valueOf = (name: string, text: string) => {
  if (!textFields.includes(name)) return asJson(name, text)
  const quoted = name !== "message" && /^"[^"\\]*"$/u.test(text)
  return Effect.succeed(quoted ? text.slice(1, -1) : text)
}

const knownFields = new Set<PropertyKey>(
  SchemaAST.getPropertySignatures(Schema.encodedSchema(HostedTurnRequest).ast).map(({ name }) => name)
)

const bodyOf = (fields: Readonly<Record<string, string>>) =>
  Effect.map(
    Effect.forEach(
      Object.entries(fields).filter(([name]) => knownFields.has(name)),
      ([name, text]) => Effect.map(valueOf(name, text), (value) => [name, value] as const)
    ),
    (entries) => Object.fromEntries(entries)
  )

const decodeTurn = Json.decodeUnknown(HostedTurnRequest)

const decode = (body: unknown) => Effect.catchTag(decodeTurn(body), "ParseError", Issues.failWithIssues)

/** The turn and the results of `onFile` for its files. Fails at the first error, before the rest has arrived. */
export const read = <A, E, R>(
  request: HttpServerRequest.HttpServerRequest,
  onFile: (file: Upload.UploadedFile) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    if (!isForm(request)) {
      const body = yield* Effect.catchTag(request.json, "RequestError", Effect.die)
      return { turn: yield* decode(body), files: new Array<A>() }
    }
    const { fields, files } = yield* Upload.read(request, onFile)
    return { turn: yield* decode(yield* bodyOf(fields)), files }
  })
