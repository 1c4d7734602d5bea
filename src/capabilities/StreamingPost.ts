/**
 * One POST to an address configured by the operator, with an answer that is read as it arrives. Every turn uses it
 * twice, and the overhead of a general HTTP client would be most of the work. All other requests to providers use
 * `HttpClient`, and addresses chosen by customers use OutboundHttp.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/** Never contains a header, a body or an address. */
export class StreamingPostError extends Schema.TaggedError<StreamingPostError>()("StreamingPostError", {
  /** `Invalid`: the request could not be made. `Late`: a time-out. `Broken`: the connection failed. */
  reason: Schema.Literal("Invalid", "Late", "Broken"),
  /** Error code of Node or undici, such as `ECONNREFUSED`; empty when there is none. */
  code: Schema.String
}) {}

export interface Posted {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Time-outs until the answer begins, and for each further piece. */
  readonly first: Duration.Duration
  readonly next: Duration.Duration
}

export interface Answered {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Waits for bytes and returns all that have arrived since the last read; null after the end. One read at a time. */
  readonly read: Effect.Effect<ReadonlyArray<Uint8Array> | null, StreamingPostError>
  /** Drops the rest of the answer, if it is short, so that the connection can be reused. */
  readonly noTokensLeft: Effect.Effect<void>
}

export class StreamingPost extends Context.Tag("capabilities/StreamingPost")<
  StreamingPost,
  {
    /** Returns when the answer begins. An incomplete request is aborted when the scope closes. */
    readonly post: (posted: Posted) => Effect.Effect<Answered, StreamingPostError, Scope.Scope>
  }
>() {}

export type StreamingPostService = Context.Tag.Service<typeof StreamingPost>
