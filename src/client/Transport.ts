/** Requests and answers: unwraps the envelope, converts errors by code, and reads streams part by part. */
import type { FailureBody } from "../http/Envelope.ts"
import { SpokeError } from "./Failure.ts"
import type { Route } from "./Routes.ts"
import type { StreamPart } from "../domain/chat/StreamPart.ts"

/** Options of every call. */
export interface CallOptions {
  /**
   * Aborts the call, or the next part of its stream, with the signal's reason. A stored turn that has begun still
   * settles; `runs.stop` ends it.
   */
  readonly signal?: AbortSignal | undefined
}

export interface RequestParts {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Sent as JSON. */
  readonly json?: unknown
  readonly form?: FormData
}

/** Handles a request, like `fetch`. */
export type Send = (request: Request) => Promise<Response>

export interface Transport {
  /** The `data` of the answer. */
  readonly call: <A>(route: Route, parts?: RequestParts, options?: CallOptions) => Promise<A>
  /** Begins when it is iterated. Ending the iteration closes the connection. */
  readonly stream: (route: Route, parts?: RequestParts, options?: CallOptions) => AsyncIterable<StreamPart>
}

/** Removes the `/v1` at the end of the public base address. */
export const originOf = (baseUrl: string) => baseUrl.replace(/\/+$/u, "").replace(/\/v1$/u, "")

/** Fills the parameters of `path`. Refuses empty values and dots, which would make the address of another route. */
const fillPath = (path: string, values: Readonly<Record<string, string | undefined>> = {}) =>
  path.replace(/:(\w+)/gu, (_, name: string) => {
    const value = values[name] ?? ""
    if (/^\.{0,2}$/u.test(value)) {
      throw new SpokeError({ code: "VALIDATION_ERROR", message: `“${value}” is no ${name}.` })
    }
    return encodeURIComponent(value)
  })

const queryOf = (query: RequestParts["query"] = {}) => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value))
  }
  return parameters.size === 0 ? "" : `?${parameters}`
}

const isFailure = (body: unknown): body is FailureBody =>
  typeof body === "object" &&
  body !== null &&
  "error" in body &&
  typeof body.error === "object" &&
  body.error !== null &&
  "code" in body.error &&
  "meta" in body &&
  typeof body.meta === "object" &&
  body.meta !== null

const invalidResponse = (status: number) =>
  new SpokeError({ code: "INVALID_RESPONSE", message: "The answer is not one of Spoke's.", status })

const unreachable = (message: string) => new SpokeError({ code: "UNREACHABLE", message })

/** The error of an answer outside 2xx. */
const errorOf = async (response: Response) => {
  const body: unknown = await response.json().catch(() => undefined)
  if (!isFailure(body)) return invalidResponse(response.status)
  const { code, details, message } = body.error
  return new SpokeError({ code, message, details, status: response.status, requestId: body.meta.requestId })
}

/** Undefined if `text` is not JSON. */
const parseJson = <A>(text: string): A | undefined => {
  try {
    const value: A = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

const eventStream = "text/event-stream"
const endMarker = "[DONE]"

/** The payloads of Server-Sent Events as they arrive; none after `signal` is aborted. */
async function* events(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined
): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader()
  const cancel = () => void reader.cancel(signal?.reason).catch(() => undefined)
  // A finished body of Node's fetch does not react to an abort, and its reader would wait for ever.
  if (signal?.aborted === true) cancel()
  else signal?.addEventListener("abort", cancel, { once: true })
  const decoder = new TextDecoder()
  let unfinished = ""
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const blocks = (unfinished + decoder.decode(value, { stream: true })).split("\n\n")
      unfinished = blocks.pop() ?? ""
      for (const block of blocks) {
        for (const line of block.split("\n")) {
          if (signal?.aborted === true) return
          if (line.startsWith("data: ")) yield line.slice(6)
        }
      }
    }
  } finally {
    signal?.removeEventListener("abort", cancel)
    await reader.cancel().catch(() => undefined)
  }
}

/** JSON of `value`. Refuses what JSON has no form for, and would leave out or write as null. */
const toJson = (value: unknown): string => {
  try {
    return JSON.stringify(value, (_, member: unknown) => {
      if (typeof member === "function" || (typeof member === "number" && !Number.isFinite(member))) {
        throw new TypeError("no JSON")
      }
      return member
    })
  } catch {
    throw new SpokeError({
      code: "VALIDATION_ERROR",
      message:
        "The request cannot be written as JSON: no functions, BigInts, numbers that are not finite, circular references."
    })
  }
}

/** The request. The error of the platform is not passed on, because it may have a header's value. */
const requestOf = (
  url: string,
  method: string,
  commonHeaders: Readonly<Record<string, string>>,
  { form, headers = {}, json }: RequestParts,
  signal: AbortSignal | undefined
) => {
  const body = json === undefined ? form : toJson(json)
  try {
    const allHeaders = new Headers({ ...commonHeaders })
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) allHeaders.set(name, value)
    }
    if (json !== undefined) allHeaders.set("content-type", "application/json")
    return new Request(url, {
      method,
      headers: allHeaders,
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal })
    })
  } catch {
    throw new SpokeError({
      code: "INVALID_CONFIG",
      message: "The address of the server, the key or another header is not valid."
    })
  }
}

/** Sends to `origin`, with `headers` on every request. */
export const make = (
  origin: string,
  send: Send,
  headers: Readonly<Record<string, string>> = {}
): Transport => {
  const request = async (route: Route, parts: RequestParts, { signal }: CallOptions) => {
    signal?.throwIfAborted()
    const url = `${origin}${fillPath(route.path, parts.path)}${queryOf(parts.query)}`
    const httpRequest = requestOf(url, route.method, headers, parts, signal)
    const response = await send(httpRequest).catch((cause: unknown) => {
      signal?.throwIfAborted()
      throw cause instanceof SpokeError ? cause : unreachable("The server cannot be reached.")
    })
    signal?.throwIfAborted()
    if (response.ok) return response
    const error = await errorOf(response)
    signal?.throwIfAborted()
    throw error
  }

  const call = async <A>(route: Route, parts: RequestParts = {}, options: CallOptions = {}): Promise<A> => {
    const response = await request(route, parts, options)
    const text = await response.text().catch(() => {
      options.signal?.throwIfAborted()
      throw unreachable("The answer was cut off.")
    })
    const body = parseJson<{ readonly data?: A } | null>(text)
    // The server has validated the answer against the declarations from which the types are derived.
    if (body?.data === undefined) throw invalidResponse(response.status)
    return body.data
  }

  async function* stream(route: Route, parts: RequestParts = {}, options: CallOptions = {}) {
    const { body, headers, status } = await request(route, parts, options)
    const type = headers.get("content-type") ?? eventStream
    if (body === null || !type.startsWith(eventStream)) {
      await body?.cancel().catch(() => undefined)
      throw invalidResponse(status)
    }
    try {
      for await (const data of events(body, options.signal)) {
        if (data === endMarker) return
        const part: StreamPart = JSON.parse(data)
        yield part
      }
    } catch (cause) {
      options.signal?.throwIfAborted()
      throw cause instanceof SpokeError ? cause : unreachable("The stream was cut off.")
    }
    options.signal?.throwIfAborted()
    throw unreachable("The stream ended early.")
  }

  return { call, stream }
}
