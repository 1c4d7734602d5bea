/** A turn with its complete reply, optionally as an object of the caller's schema. */
import type { CompleteTurnRequest, CompleteTurnResult } from "../domain/chat/ChatTurn.ts"
import { SpokeError } from "./Failure.ts"
import { issueText, type StandardInput, target } from "./StandardSchema.ts"
import type { CallOptions } from "./Transport.ts"

export type ChatRequest = typeof CompleteTurnRequest.Encoded
export type ChatResult = typeof CompleteTurnResult.Encoded

export interface IdempotentOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters. A request with the same key has no second effect for 24 hours. */
  readonly idempotencyKey?: string | undefined
}

/** A turn whose reply has to fit a schema of zod, valibot or another library with Standard Schema. */
export type StructuredRequest<S> = Omit<ChatRequest, "responseSchema"> & { readonly responseSchema: S }

/** `object` is the schema's output for the reply. */
export type StructuredResult<A> = Omit<ChatResult, "object"> & { readonly object: A }

/** A turn with its complete reply. With a schema as `responseSchema`, its `object` has the schema's type. */
export interface Chat {
  <A>(request: StructuredRequest<StandardInput<A>>, options?: IdempotentOptions): Promise<StructuredResult<A>>
  /** `responseSchema` may be a JSON Schema. */
  (request: ChatRequest, options?: IdempotentOptions): Promise<ChatResult>
}

const isStandard = <A>(
  request: StructuredRequest<StandardInput<A>> | ChatRequest
): request is StructuredRequest<StandardInput<A>> =>
  request.responseSchema !== undefined && "~standard" in request.responseSchema

const isObject = (value: unknown): value is Readonly<Record<string, never>> =>
  typeof value === "object" && value !== null

/** Converts the schema to JSON Schema. */
const toJsonSchema = <A>(schema: StandardInput<A>): Readonly<Record<string, never>> => {
  const { jsonSchema, vendor } = schema["~standard"]
  try {
    const plain: unknown = JSON.parse(JSON.stringify(jsonSchema?.input({ target })))
    if (isObject(plain)) return plain
  } catch {
    // The error is reported below.
  }
  throw new SpokeError({
    code: "INVALID_CONFIG",
    message: `The responseSchema cannot be written as JSON Schema (${vendor}): pass its JSON Schema.`
  })
}

/** {@link Chat} over `send`, which accepts only JSON Schemas. */
export const make = (
  send: (request: ChatRequest, options?: IdempotentOptions) => Promise<ChatResult>
): Chat => {
  function chat<A>(
    request: StructuredRequest<StandardInput<A>>,
    options?: IdempotentOptions
  ): Promise<StructuredResult<A>>
  function chat(request: ChatRequest, options?: IdempotentOptions): Promise<ChatResult>
  async function chat<A>(
    request: StructuredRequest<StandardInput<A>> | ChatRequest,
    options?: IdempotentOptions
  ): Promise<StructuredResult<A> | ChatResult> {
    if (!isStandard(request)) return send(request, options)
    const { responseSchema, ...rest } = request
    const result = await send({ ...rest, responseSchema: toJsonSchema(responseSchema) }, options)
    const decoded = await responseSchema["~standard"].validate(result.object)
    if (decoded.issues === undefined) return { ...result, object: decoded.value }
    throw new SpokeError({
      code: "INVALID_RESPONSE",
      message: `The reply's object does not fit the schema: ${decoded.issues.map(issueText).join("; ")}`
    })
  }
  return chat
}
