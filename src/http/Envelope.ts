/**
 * The envelope: `{ data, meta }` and `{ error, meta }`. Endpoints declare `success(Thing)` and `failure(NotFound,
 * Conflict)`; handlers return plain values and fail with the domain's errors. A client derived from the same
 * declarations gets plain values and errors back.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import {
  type CodedError,
  type ErrorCode,
  errors,
  NotFound,
  ServiceUnavailable,
  ValidationError
} from "../domain/Errors.ts"
import { RequestId } from "./server/RequestId.ts"
import { MiB } from "../domain/Bytes.ts"
import { optional } from "../domain/Optional.ts"

/** Maximum bytes of an endpoint's body; {@link maxJsonBytes} without the annotation. Larger bodies are 413. */
export class MaxBodyBytes extends Context.Tag("http/MaxBodyBytes")<MaxBodyBytes, number>() {}

/** When the endpoint last changed for its callers, ISO 8601. Shown in `/openapi.json`. */
export class UpdatedAt extends Context.Tag("http/UpdatedAt")<UpdatedAt, string>() {}

export const maxJsonBytes = MiB
export const maxWebhookBytes = 4 * MiB

const Meta = Schema.Struct({ requestId: Schema.String })

/** Accepts any value: the surrounding transformation encodes and decodes it. */
const anyValue = <A>(documented?: AST.AST): Schema.Schema<A> =>
  Schema.declare(
    (_: unknown): _ is A => true,
    documented === undefined ? {} : { [AST.SurrogateAnnotationId]: documented }
  )

/**
 * `{ data, meta: { requestId } }` around `schema`, which documentation and clients see. A value that does not fit
 * `schema` is a defect and a 500: the framework would answer 400.
 */
export const success = <A, I>(schema: Schema.Schema<A, I>): Schema.Schema<A, unknown> => {
  const Wire = Schema.Struct({ data: schema, meta: Meta })
  // Encoders and decoders are made when they are first used, not at the start. The library keeps them.
  return Schema.transformOrFail(anyValue<unknown>(Wire.ast), anyValue<A>(), {
    strict: true,
    decode: (body) => ParseResult.map(ParseResult.decodeUnknown(Wire)(body), ({ data }) => data),
    encode: (value) =>
      Effect.flatMap(RequestId, (requestId) =>
        Effect.map(Effect.orDie(Schema.encode(schema)(value)), (data) => ({ data, meta: { requestId } }))
      )
  })
}

/** The body of {@link failure} on the wire. */
export interface FailureBody {
  readonly error: {
    readonly code: ErrorCode
    readonly message: string
    readonly details?: Readonly<Record<string, unknown>>
  }
  readonly meta: { readonly requestId: string }
}

/** `error` in its envelope. */
export const failureBody = (
  error: {
    readonly _tag: ErrorCode
    readonly message: string
    readonly details?: Readonly<Record<string, unknown>> | undefined
  },
  requestId: string
): FailureBody => ({
  error: {
    code: error._tag,
    message: error.message,
    ...(error.details === undefined ? {} : { details: error.details })
  },
  meta: { requestId }
})

/** True for the documented errors. */
export const isCoded = (thrown: unknown): thrown is CodedError =>
  typeof thrown === "object" &&
  thrown !== null &&
  "_tag" in thrown &&
  Object.values(errors).some((errorClass) => thrown instanceof errorClass)

/** The HTTP status of the code. */
export const statusOf = (code: ErrorCode): number => HttpApiSchema.getStatusErrorAST(errors[code].ast)

type ErrorClass = (typeof errors)[ErrorCode]

/** Cached schemas: most endpoints fail with the same errors, and building a schema for each would slow the start. */
const failures = new Map<ErrorClass, AST.AST>()

const failureAst = (errorClass: ErrorClass): AST.AST => {
  const code = errorClass._tag
  const Wire = Schema.Struct({
    error: Schema.Struct({
      code: Schema.Literal(code),
      message: Schema.String,
      details: optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
    }),
    meta: Meta
  })
  const isInstance = (thrown: unknown): thrown is CodedError => thrown instanceof errorClass
  const enveloped = Schema.transformOrFail(anyValue<unknown>(Wire.ast), Schema.declare(isInstance), {
    strict: true,
    decode: (body) =>
      ParseResult.map(
        ParseResult.decodeUnknown(Wire)(body),
        ({ error: { message, details } }) =>
          new errorClass({ message, ...(details === undefined ? {} : { details }) })
      ),
    encode: ({ message, details }) =>
      Effect.map(RequestId, (requestId) => failureBody({ _tag: code, message, details }, requestId))
  })
  return enveloped.annotations({ ...HttpApiSchema.annotations({ status: statusOf(code) }) }).ast
}

/** The errors of an endpoint, each in the envelope with its own status. */
export const failure = <const C extends readonly [ErrorClass, ...ReadonlyArray<ErrorClass>]>(
  ...errorClasses: C
): Schema.Schema<InstanceType<C[number]>, unknown> =>
  Schema.Union(
    ...errorClasses.map((errorClass: C[number]) => {
      const ast = failures.get(errorClass) ?? failureAst(errorClass)
      failures.set(errorClass, ast)
      return Schema.make<InstanceType<C[number]>, unknown>(ast)
    })
  )

/** A text outside the envelope. */
export const textBody = (contentType: string) =>
  Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType }))

/** Bytes outside the envelope. */
export const bytesBody = Schema.Uint8ArrayFromSelf.pipe(
  HttpApiSchema.withEncoding({ kind: "Uint8Array", contentType: "application/octet-stream" })
)

/** An endpoint that deletes what the `:id` of its route names. */
export const deletion = <const Name extends string, Id>(
  name: Name,
  route: HttpApiEndpoint.PathSegment,
  id: Schema.Schema<Id, string>
) => {
  const path: Schema.Schema<{ readonly id: Id }, { readonly id: string }> = Schema.Struct({ id })
  return HttpApiEndpoint.del(name, route)
    .setPath(path)
    .addSuccess(success(Schema.Struct({ id, deleted: Schema.Literal(true) })))
    .addError(failure(ValidationError, NotFound, ServiceUnavailable))
}
