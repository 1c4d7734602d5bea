/**
 * One POST to an address that the operator configured, and its answer as the bytes come: what every turn does twice, so
 * that a general HTTP client's steps for each request and each piece would be most of them. Everything else that is asked
 * of providers goes through `HttpClient`, and addresses that a customer chose through OutboundHttp.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/** Never carries a header, a body or an address. */
export class StreamingPostError extends Schema.TaggedError<StreamingPostError>()("StreamingPostError", {
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
  /** The bytes that have come since the last read, once there are any; null after the end. One read at a time. */
  readonly read: Effect.Effect<ReadonlyArray<Uint8Array> | null, StreamingPostError>
  /** The rest is of no interest, but the connection is: a short one is taken and dropped. */
  readonly noTokensLeft: Effect.Effect<void>
}

export class StreamingPost extends Context.Tag("capabilities/StreamingPost")<
  StreamingPost,
  {
    /** The answer, as soon as it begins. A request whose answer is not whole when the scope closes is aborted. */
    readonly post: (posted: Posted) => Effect.Effect<Answered, StreamingPostError, Scope.Scope>
  }
>() {}

export type StreamingPostService = Context.Tag.Service<typeof StreamingPost>
