/**
 * The only way out for requests whose address a customer chose: crawling, files, tools.
 * Addresses are checked after DNS resolution and on every redirect, and the connection goes to the checked address.
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
   * `host`, `accept-encoding`, lengths and what concerns the connection alone are left out. A redirect to another origin
   * keeps `accept`, `accept-language` and `user-agent`; the same host moved from http to https counts as the same.
   */
  readonly headers?: Readonly<Record<string, string>>
  /** Never handed to another origin by a redirect. */
  readonly body?: Uint8Array | string
  /** Largest accepted body after decompression, in bytes; default 50 MiB. */
  readonly maxBytes?: number
  /** For the whole exchange, redirects included; default 30 seconds. */
  readonly timeout?: Duration.DurationInput
  /** Most redirects to follow; default 5. */
  readonly maxRedirects?: number
}

export interface OutboundResponse {
  /** The address after redirects. */
  readonly url: string
  readonly status: number
  /** Lower-case names; repeated headers are joined by `, `. `content-encoding` is gone when `body` was decompressed. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/**
 * `message` is for the customer: it names the host and the rule, never a path, a header or the private address of a name.
 * `Unresolved`, `Unreachable` and `TimedOut` may pass by themselves; the others stay until a setting or the site changes.
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
  /** True when one of them is not routed globally: it is reached because the operator allows it. */
  readonly internal: boolean
}

/** The same rules for what is no HTTP: the addresses that a host may be connected to at, looked up once. */
export class OutboundAddresses extends Context.Tag("capabilities/OutboundAddresses")<
  OutboundAddresses,
  {
    readonly of: (host: string, port: number) => Effect.Effect<AllowedAddresses, OutboundHttpError>
  }
>() {}

export class OutboundHttp extends Context.Tag("capabilities/OutboundHttp")<
  OutboundHttp,
  {
    /** One exchange; any HTTP status is a response, not an error. Interruption closes the connection. */
    readonly fetch: (request: OutboundRequest) => Effect.Effect<OutboundResponse, OutboundHttpError>
  }
>() {}
