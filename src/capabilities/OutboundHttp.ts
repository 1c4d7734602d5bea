/**
 * The HTTP client for addresses chosen by customers: crawling, files, tools. Addresses are checked after DNS resolution
 * and on every redirect, and the connection goes to the checked address.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export interface OutboundRequest {
  /** Absolute, http or https, without credentials. */
  readonly url: string
  /** GET (the default), HEAD, OPTIONS, POST, PUT, PATCH or DELETE. */
  readonly method?: string
  /**
   * `host`, `accept-encoding`, lengths and connection headers are dropped. A redirect to another origin keeps only
   * `accept`, `accept-language` and `user-agent`. A change from http to https of the same host is not another origin.
   */
  readonly headers?: Readonly<Record<string, string>>
  /** Never sent to another origin by a redirect. */
  readonly body?: Uint8Array | string
  /** Maximum body size after decompression, in bytes; default: 50 MiB. */
  readonly maxBytes?: number
  /** Time-out of the whole exchange, including redirects; default: 30 seconds. */
  readonly timeout?: Duration.DurationInput
  /**
   * Gets each piece of an uncompressed body as it arrives. The body ends with the first piece for which it is true, even
   * if the server keeps the connection open. With it no compression is offered.
   */
  readonly isLast?: (piece: Uint8Array) => boolean
  /** Maximum number of redirects; default: 5. */
  readonly maxRedirects?: number
}

export interface OutboundResponse {
  /** The address after redirects. */
  readonly url: string
  readonly status: number
  /**
   * Lower-case names. Repeated headers are joined by `, `. `content-encoding` is removed if `body` was decompressed.
   */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/**
 * `message` is for the customer. It names the host and the rule, never a path, a header or the private address of a
 * name. `Unresolved`, `Unreachable` and `TimedOut` may be transient; the others stay until a setting or the site
 * changes.
 */
export class OutboundHttpError extends Schema.TaggedError<OutboundHttpError>()("OutboundHttpError", {
  reason: Schema.Literal(
    "InvalidUrl",
    "Refused",
    "Unresolved",
    "Unreachable",
    "TimedOut",
    "TooLarge",
    "TooManyRedirects"
  ),
  message: Schema.String
}) {}

export interface AllowedAddresses {
  /** Not empty. Connect to one of these, never to the name. */
  readonly addresses: ReadonlyArray<string>
  /** True if one of them is not routed globally. The operator has allowed it. */
  readonly internal: boolean
}

/** The same rules for protocols other than HTTP: resolves a host once to the addresses that may be connected to. */
export class OutboundAddresses extends Context.Tag("capabilities/OutboundAddresses")<
  OutboundAddresses,
  {
    readonly of: (host: string, port: number) => Effect.Effect<AllowedAddresses, OutboundHttpError>
  }
>() {}

export class OutboundHttp extends Context.Tag("capabilities/OutboundHttp")<
  OutboundHttp,
  {
    /** One exchange. Any HTTP status is a response, not an error. Interruption closes the connection. */
    readonly fetch: (request: OutboundRequest) => Effect.Effect<OutboundResponse, OutboundHttpError>
  }
>() {}
