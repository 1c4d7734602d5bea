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
  readonly call: <A>(route: Route, given?: RequestParts, options?: CallOptions) => Promise<A>
  /** Begins when it is iterated. Ending the iteration closes the connection. */
  readonly stream: (route: Route, given?: RequestParts, options?: CallOptions) => AsyncIterable<StreamPart>
}

/** Removes the `/v1` at the end of the public base address. */
export const originOf = (baseUrl: string) => baseUrl.replace(/\/+$/u, "").replace(/\/v1$/u, "")

/** Nothing and dots would make the address of another route, such as that of the list. */
const filled = (path: string, values: Readonly<Record<string, string | undefined>> = {}) =>
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

const unreadable = (status: number) =>
  new SpokeError({ code: "INVALID_RESPONSE", message: "The answer is not one of Spoke's.", status })

const unreachable = (message: string) => new SpokeError({ code: "UNREACHABLE", message })

/** The error of an answer outside 2xx. */
const refusal = async (response: Response) => {
  const body: unknown = await response.json().catch(() => undefined)
  if (!isFailure(body)) return unreadable(response.status)
  const { code, details, message } = body.error
  return new SpokeError({ code, message, details, status: response.status, requestId: body.meta.requestId })
}

/** Undefined for what is no JSON. */
const parsed = <A>(text: string): A | undefined => {
  try {
    const value: A = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

const eventStream = "text/event-stream"
const ending = "[DONE]"

/** The payloads of Server-Sent Events as they arrive; none after `signal` is aborted. */
async function* events(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined
): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader()
  const leave = () => void reader.cancel(signal?.reason).catch(() => undefined)
  // A finished body of Node's fetch does not react to an abort, and its reader would wait for ever.
  if (signal?.aborted === true) leave()
  else signal?.addEventListener("abort", leave, { once: true })
  const decoder = new TextDecoder()
  let rest = ""
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n")
      rest = blocks.pop() ?? ""
      for (const block of blocks) {
        for (const line of block.split("\n")) {
          if (signal?.aborted === true) return
          if (line.startsWith("data: ")) yield line.slice(6)
        }
      }
    }
  } finally {
    signal?.removeEventListener("abort", leave)
    await reader.cancel().catch(() => undefined)
  }
}

/** Sends to `origin`, with `headers` on every request. */
export const make = (
  origin: string,
  send: Send,
  headers: Readonly<Record<string, string>> = {}
): Transport => {
  const request = async (route: Route, given: RequestParts, { signal }: CallOptions) => {
    signal?.throwIfAborted()
    const all = new Headers({ ...headers })
    for (const [name, value] of Object.entries(given.headers ?? {})) {
      if (value !== undefined) all.set(name, value)
    }
    if (given.json !== undefined) all.set("content-type", "application/json")
    const body = given.json === undefined ? given.form : JSON.stringify(given.json)
    const made = new Request(`${origin}${filled(route.path, given.path)}${queryOf(given.query)}`, {
      method: route.method,
      headers: all,
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal })
    })
    const response = await send(made).catch((cause: unknown) => {
      signal?.throwIfAborted()
      throw cause instanceof SpokeError ? cause : unreachable("The server cannot be reached.")
    })
    signal?.throwIfAborted()
    if (response.ok) return response
    const refused = await refusal(response)
    signal?.throwIfAborted()
    throw refused
  }

  const call = async <A>(route: Route, given: RequestParts = {}, options: CallOptions = {}): Promise<A> => {
    const response = await request(route, given, options)
    const text = await response.text().catch(() => {
      options.signal?.throwIfAborted()
      throw unreachable("The answer was cut off.")
    })
    const body = parsed<{ readonly data?: A } | null>(text)
    // The server has validated the answer against the declarations from which the types are derived.
    if (body?.data === undefined) throw unreadable(response.status)
    return body.data
  }

  async function* stream(route: Route, given: RequestParts = {}, options: CallOptions = {}) {
    const { body, headers, status } = await request(route, given, options)
    const type = headers.get("content-type") ?? eventStream
    if (body === null || !type.startsWith(eventStream)) {
      await body?.cancel().catch(() => undefined)
      throw unreadable(status)
    }
    try {
      for await (const data of events(body, options.signal)) {
        if (data === ending) return
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
