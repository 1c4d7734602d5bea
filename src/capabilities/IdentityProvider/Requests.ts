/** Requests of `oauth4webapi` through {@link OutboundHttp}: bounded in time and size, without redirects. */
import type { Context } from "effect"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import * as Oauth from "oauth4webapi"
import { isLocalHost } from "../../domain/Address.ts"
import type { OutboundHttp, OutboundHttpError } from "../OutboundHttp.ts"

/** Maximum size of each answer: metadata, keys, tokens, userinfo. */
export const maxBytes = 256 * 1_024
export const timeout = Duration.seconds(10)

export const isWeb = (url: URL | null): url is URL => url !== null && /^https?:$/.test(url.protocol)

/** Providers must use https, except one on this machine, which the address rules must allow. */
export const isSafe = (url: URL | null): url is URL =>
  isWeb(url) && (url.protocol === "https:" || isLocalHost(url.hostname))

type Http = Context.Tag.Service<typeof OutboundHttp>

/** Sends the library's requests in the fiber's context, so that limits count for its tenant. */
const optionsFor = <E>(
  http: Http,
  issuer: URL,
  signal: AbortSignal,
  runtime: Runtime.Runtime<never>,
  fromHttpError: (error: OutboundHttpError) => E
) => ({
  signal,
  [Oauth.allowInsecureRequests]: issuer.protocol === "http:" && isLocalHost(issuer.hostname),
  [Oauth.customFetch]: async (
    url: string,
    init: Oauth.CustomFetchOptions<"GET" | "POST", URLSearchParams | string | null | undefined>
  ): Promise<Response> => {
    const { body: sent } = init
    const exchange = http.fetch({
      url,
      method: init.method,
      headers: init.headers,
      ...(sent === null || sent === undefined ? {} : { body: sent.toString() }),
      maxBytes,
      timeout,
      maxRedirects: 0
    })
    const exit = await Runtime.runPromiseExit(runtime)(Effect.mapError(exchange, fromHttpError), { signal })
    if (Exit.isFailure(exit)) {
      throw exit.cause._tag === "Fail" ? exit.cause.error : new Error("The request was interrupted.")
    }
    const { body, headers, status } = exit.value
    // These responses have no body, and the constructor refuses one.
    const hasNoBody = status === 204 || status === 205 || status === 304
    return new Response(hasNoBody ? null : new Uint8Array(body), { status: Math.max(200, status), headers })
  }
})

export type Options = ReturnType<typeof optionsFor>

/** Calls the library for a provider. `fromHttpError` converts errors of requests, `fromThrown` everything thrown. */
export const ask = <A, E>(
  http: Http,
  issuer: URL,
  call: (options: Options) => Promise<A>,
  fromHttpError: (error: OutboundHttpError) => E,
  fromThrown: (thrown: unknown) => E
): Effect.Effect<A, E> =>
  Effect.flatMap(Effect.runtime(), (runtime) =>
    Effect.tryPromise({
      try: (signal) => call(optionsFor(http, issuer, signal, runtime, fromHttpError)),
      catch: fromThrown
    })
  )
