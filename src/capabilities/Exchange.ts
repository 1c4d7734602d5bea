/**
 * One POST to an address that the operator configured, and its answer as the bytes come: what every turn does twice, so
 * that a general HTTP client's steps for each request and each piece would be most of them. Everything else that is asked
 * of providers goes through `HttpClient`, and addresses that a customer chose through OutboundHttp.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** Never carries a header, a body or an address. */
export class ExchangeError extends Schema.TaggedError<ExchangeError>()("ExchangeError", {
  /** `Invalid`: the request could not be made. `Late`: no byte came in time. `Broken`: the connection failed. */
  reason: Schema.Literal("Invalid", "Late", "Broken"),
  /** Of Node or undici, such as `ECONNREFUSED`; empty when there is none. */
  code: Schema.String
}) {}

export interface Posted {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Longest wait for the answer to begin, and then for each piece of it. */
  readonly first: Duration.Duration
  readonly next: Duration.Duration
}

export interface Answered {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** What has come since the last look, waited for when it is nothing; null once the answer has ended. One at a time. */
  readonly read: Effect.Effect<ReadonlyArray<Uint8Array> | null, ExchangeError>
  /**
   * Calls `on` with what comes, as {@link read} gives it, until it returns an effect, and goes on as that. A piece costs
   * no step of a fiber. To `null`, after which nothing comes, it has to return one.
   */
  readonly each: <A, E, R>(
    on: (chunks: ReadonlyArray<Uint8Array> | null) => Effect.Effect<A, E, R> | null
  ) => Effect.Effect<A, E | ExchangeError, R>
  /** The rest is of no interest, but the connection is: a short one is taken and dropped. */
  readonly enough: Effect.Effect<void>
}

export class Exchange extends Context.Tag("capabilities/Exchange")<
  Exchange,
  {
    /** Hands the answer to `use`. Whatever ends that, a request whose answer is not whole is aborted. */
    readonly post: <A, E, R>(
      posted: Posted,
      use: (answer: Answered) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | ExchangeError, R>
  }
>() {}

export type ExchangeService = Context.Tag.Service<typeof Exchange>
