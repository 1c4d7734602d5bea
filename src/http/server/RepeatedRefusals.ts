/**
 * Repeats refusals. After a 503 with `retry-after`, requests from the same network with the same credential, method and
 * address get the same response for a second, the shortest time that `retry-after` can state. A client that retries at
 * once then costs a look-up instead of routing, authentication and decoding: 0.1 instead of 0.8 to 1.5 ms of the
 * thread. The response is sent half a second later, so that such a client does not retry hundreds of times a second.
 *
 * Requests without a credential are excluded, because other clients of their network may still be served. So are
 * webhooks, whose senders share addresses and send no credential.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type * as Clock from "effect/Clock"
import * as RequestMetrics from "../system/RequestMetrics.ts"
import * as Headers from "./Headers.ts"
import * as RequestId from "./RequestId.ts"

/** Milliseconds for which a refusal is repeated. */
const repeatedMillis = 1_000
/** Maximum refusals that are kept. The oldest is removed first. */
const maxKept = 1_024
/** Milliseconds until a repeated refusal is sent. */
const delayMillis = 500
/** Maximum requests that wait for a repeated refusal. More of them are refused at once. */
const maxDelayed = 1_024
/** Maximum characters of a key. A request with a longer one is handled. */
const maxKeyLength = 4_096

interface Refusal {
  readonly until: number
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The body, which contains `requestId`. */
  readonly body: string
  readonly requestId: string
  readonly route: string | null
}

/** The request's credential; undefined without one. The address of a realtime socket contains it. */
const credentialOf = ({ headers, url = "" }: IncomingMessage): string | undefined =>
  Headers.get(headers, "x-api-key") ??
  headers.authorization ??
  headers.cookie ??
  (url.includes("token=") ? "" : undefined)

const keyOf = (owner: string, request: IncomingMessage): string | undefined => {
  const credential = credentialOf(request)
  if (credential === undefined) return undefined
  const key = [owner, request.method, request.url, credential].join("\n")
  return key.length > maxKeyLength ? undefined : key
}

interface DelayedResponse {
  /** Monotonic time in milliseconds. */
  readonly due: number
  readonly send: () => void
}

/** Requests that are being handled, with the key under which their refusal would be kept. */
const handled = new WeakMap<IncomingMessage, { readonly refusals: RepeatedRefusals; readonly key: string }>()

/** Keeps the response to `request` if it is a refusal. `route` is the pattern. */
export const remember = (
  request: IncomingMessage,
  { body, headers, status }: HttpServerResponse.HttpServerResponse,
  requestId: string,
  route: string | null
): void => {
  if (status !== 503 || headers["retry-after"] === undefined || body._tag !== "Uint8Array") return
  const found = handled.get(request)
  found?.refusals.keep(found.key, {
    status,
    headers,
    body: new TextDecoder().decode(body.body),
    requestId,
    route
  })
}

/** The refusals of one server. */
export class RepeatedRefusals {
  readonly #kept = new Map<string, Refusal>()
  /** In the order in which they are due. */
  readonly #delayed: Array<DelayedResponse> = []
  readonly #clock: Clock.Clock

  constructor(clock: Clock.Clock) {
    this.#clock = clock
  }

  /** Monotonic, in milliseconds. */
  get #now(): number {
    return Number(this.#clock.unsafeCurrentTimeNanos()) / 1e6
  }

  keep(key: string, refusal: Omit<Refusal, "until">): void {
    // Deleted first, so that the map is in order of age.
    this.#kept.delete(key)
    this.#kept.set(key, { ...refusal, until: this.#now + repeatedMillis })
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= maxKept) return
      this.#kept.delete(oldest)
    }
  }

  /** True while requests wait for {@link sendDue}. */
  get hasDelayed(): boolean {
    return this.#delayed.length > 0
  }

  /** Sends the responses that are due. */
  sendDue(): void {
    for (let next = this.#delayed[0]; next !== undefined; next = this.#delayed[0]) {
      if (next.due > this.#now) return
      this.#delayed.shift()
      next.send()
    }
  }

  /**
   * Refuses `request` of `owner` and returns true if it repeats a refused one. {@link sendDue} sends the response.
   * `open` returns undefined if the request has been answered by then, or its client has disconnected.
   */
  repeat(owner: string, request: IncomingMessage, open: () => ServerResponse | undefined): boolean {
    const key = keyOf(owner, request)
    if (key === undefined) return false
    const arrivedAt = this.#now
    const refusal = this.#kept.get(key)
    if (refusal === undefined || refusal.until <= arrivedAt) {
      this.#kept.delete(key)
      handled.set(request, { refusals: this, key })
      return false
    }
    const send = () => {
      const response = open()
      if (response !== undefined) this.#send(refusal, request, response, arrivedAt)
    }
    if (this.#delayed.length < maxDelayed) this.#delayed.push({ due: arrivedAt + delayMillis, send })
    else send()
    return true
  }

  #send(
    { body: firstBody, headers, requestId: firstId, route, status }: Refusal,
    request: IncomingMessage,
    response: ServerResponse,
    arrivedAt: number
  ): void {
    const requestId = RequestId.of(
      Headers.get(request.headers, RequestId.header),
      this.#clock.unsafeCurrentTimeMillis()
    )
    // A client's id may be as short as a digit, which occurs elsewhere too.
    const body = firstBody.replace(`"requestId":"${firstId}"`, `"requestId":"${requestId}"`)
    RequestMetrics.observe(request.method ?? "", route, status, this.#now - arrivedAt)
    response.writeHead(status, {
      ...headers,
      [RequestId.header]: requestId,
      "content-length": Buffer.byteLength(body)
    })
    response.end(body)
  }
}
