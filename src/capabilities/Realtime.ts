/** Word between processes that something happened in a conversation. The database says what: no signal carries text. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Writer } from "../domain/conversations/RealtimeFrame.ts"
import { ConversationId, RunId } from "../domain/Ids.ts"

/** The conversation's messages, its state or the events of `runId` are not what they were. */
const Changed = Schema.TaggedStruct("Changed", {
  conversationId: ConversationId,
  runId: Schema.NullOr(RunId)
})
/** Somebody writes: the agent, unless `by` says who else. */
const Typing = Schema.TaggedStruct("Typing", {
  conversationId: ConversationId,
  by: Schema.optionalWith(Writer, { exact: true })
})

export const Signal = Schema.Union(Changed, Typing)
export type Signal = typeof Signal.Type

export class Realtime extends Context.Tag("capabilities/Realtime")<
  Realtime,
  {
    /**
     * Tells the subscribers of every process. Returns at once and never fails; a signal may be lost under pressure or when
     * the connection between processes is, so a reader that must not miss anything polls the database from time to time.
     */
    readonly publish: (signal: Signal) => Effect.Effect<void>
    /**
     * Subscribed once this returns, until the scope closes. A slow reader loses its oldest signals. When others may have
     * been lost on the way, a `Changed` without a run comes.
     */
    readonly subscribe: (
      conversationId: ConversationId
    ) => Effect.Effect<Queue.Dequeue<Signal>, never, Scope.Scope>
  }
>() {}
