/**
 * The only way out for requests whose address a customer chose: crawling, files, tools (contract 7, guarantee G30).
 * Addresses are checked after DNS resolution and on every redirect, and the connection goes to the checked address.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export interface OutboundRequest {
  readonly url: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  /** Largest accepted body after decompression, in bytes; default 50 MiB. */
  readonly maxBytes?: number
  /** For the whole exchange, redirects included; default 30 seconds. */
  readonly timeout?: Duration.DurationInput
  /** Most redirects to follow; default 5. */
  readonly maxRedirects?: number
}

export interface OutboundResponse {
  /** Where the last redirect led. */
  readonly url: string
  readonly status: number
  /** Lower-case names; repeated headers are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** `message` is for the customer: it names the host and the rule, never a header or a resolved secret. */
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

export class OutboundHttp extends Context.Tag("capabilities/OutboundHttp")<
  OutboundHttp,
  {
    /** One exchange; any HTTP status is a response, not an error. Interruption closes the connection. */
    readonly fetch: (request: OutboundRequest) => Effect.Effect<OutboundResponse, OutboundHttpError>
  }
>() {}
