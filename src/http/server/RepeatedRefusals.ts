/**
 * Refuses a request again that was just refused: if a request was answered 503 with `retry-after`, the same network,
 * credential, method and address get the same answer for a second, which is the least that `retry-after` can ask for.
 * A caller whom a shared limit refuses and who comes back at once then costs a look-up instead of routing, authentication
 * and decoding: 0.1 instead of 0.8 to 1.5 ms of the thread that all callers share. The answer comes half a second later,
 * so that a caller who does not wait does not come back hundreds of times a second either.
 *
 * A request without a credential is never refused so: other callers of its network may have another share. Neither are
 * webhooks, whose senders share addresses and send no credential.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type * as Clock from "effect/Clock"
import * as RequestMetrics from "../system/RequestMetrics.ts"
import * as Headers from "./Headers.ts"
import * as RequestId from "./RequestId.ts"

/** Milliseconds for which an answer is repeated. */
const repeatedMillis = 1_000
/** Maximum answers that are kept; the oldest is forgotten first. */
const maxKept = 1_024
/** Milliseconds until a repeated answer is sent. */
const delayMillis = 500
/** Maximum requests that wait for their repeated answer. Further ones are answered at once. */
const maxDelayed = 1_024
/** Maximum characters of what tells callers apart. A request with more is handled. */
const maxKeyLength = 4_096

interface Refusal {
  readonly until: number
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** With {@link requestId} in it. */
  readonly text: string
  readonly requestId: string
  readonly route: string | null
}

/** The request's credential; undefined without one. A visitor's socket has it in its address. */
const credentialOf = ({ headers, url = "" }: IncomingMessage): string | undefined =>
  Headers.line(headers, "x-api-key") ??
  headers.authorization ??
  headers.cookie ??
  (url.includes("token=") ? "" : undefined)

const keyOf = (owner: string, request: IncomingMessage): string | undefined => {
  const credential = credentialOf(request)
  if (credential === undefined) return undefined
  const key = [owner, request.method, request.url, credential].join("\n")
  return key.length > maxKeyLength ? undefined : key
}

interface Delayed {
  /** When it is sent. */
  readonly due: number
  readonly send: () => void
}

interface Arrived {
  readonly refusals: RepeatedRefusals
  readonly key: string
}

const arrived = new WeakMap<IncomingMessage, Arrived>()

/** Tells the request's server how it was answered, so that it may repeat the answer. `route` is the pattern. */
export const answered = (
  request: IncomingMessage,
  { body, headers, status }: HttpServerResponse.HttpServerResponse,
  requestId: string,
  route: string | null
): void => {
  if (status !== 503 || headers["retry-after"] === undefined || body._tag !== "Uint8Array") return
  const of = arrived.get(request)
  of?.refusals.keep(of.key, {
    status,
    headers,
    text: new TextDecoder().decode(body.body),
    requestId,
    route
  })
}

/** The refusals of one server. */
export class RepeatedRefusals {
  readonly #kept = new Map<string, Refusal>()
  /** In the order in which they are due. */
  readonly #delayed: Array<Delayed> = []
  readonly #clock: Clock.Clock

  constructor(clock: Clock.Clock) {
    this.#clock = clock
  }

  /** Monotonic, in milliseconds. */
  get #now(): number {
    return Number(this.#clock.unsafeCurrentTimeNanos()) / 1e6
  }

  keep(key: string, refusal: Omit<Refusal, "until">): void {
    // Of equal age, so that the first is always the oldest.
    this.#kept.delete(key)
    this.#kept.set(key, { ...refusal, until: this.#now + repeatedMillis })
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= maxKept) return
      this.#kept.delete(oldest)
    }
  }

  /** True while requests wait for {@link sendDue}. */
  get isBusy(): boolean {
    return this.#delayed.length > 0
  }

  /** Sends the answers that are due. */
  sendDue(): void {
    for (let next = this.#delayed[0]; next !== undefined; next = this.#delayed[0]) {
      if (next.due > this.#now) return
      this.#delayed.shift()
      next.send()
    }
  }

  /**
   * Returns true if `request` of `owner` is a refused one that comes again. Its answer is sent with {@link sendDue}. `open`
   * returns undefined if the request has been answered by then, or its client has gone.
   */
  repeat(owner: string, request: IncomingMessage, open: () => ServerResponse | undefined): boolean {
    const key = keyOf(owner, request)
    if (key === undefined) return false
    const came = this.#now
    const refusal = this.#kept.get(key)
    if (refusal === undefined || refusal.until <= came) {
      this.#kept.delete(key)
      arrived.set(request, { refusals: this, key })
      return false
    }
    const send = () => {
      const response = open()
      if (response !== undefined) this.#send(refusal, request, response, came)
    }
    if (this.#delayed.length < maxDelayed) this.#delayed.push({ due: came + delayMillis, send })
    else send()
    return true
  }

  #send(
    { headers, requestId: first, route, status, text: firstText }: Refusal,
    request: IncomingMessage,
    response: ServerResponse,
    came: number
  ): void {
    const requestId = RequestId.of(
      Headers.line(request.headers, RequestId.header),
      this.#clock.unsafeCurrentTimeMillis()
    )
    // A client's id may be as short as a digit, which occurs elsewhere too.
    const text = firstText.replace(`"requestId":"${first}"`, `"requestId":"${requestId}"`)
    RequestMetrics.observe(request.method ?? "", route, status, this.#now - came)
    response.writeHead(status, {
      ...headers,
      [RequestId.header]: requestId,
      "content-length": Buffer.byteLength(text)
    })
    response.end(text)
  }
}
