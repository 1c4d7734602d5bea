/**
 * Signals between processes about changes of a conversation. They carry no text: readers get the changes from the
 * database.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Writer } from "../domain/conversations/RealtimeFrame.ts"
import { ConversationId, RunId } from "../domain/Ids.ts"

/** The conversation's messages, its state or the events of `runId` have changed. */
const Changed = Schema.TaggedStruct("Changed", {
  conversationId: ConversationId,
  runId: Schema.NullOr(RunId)
})
/** Somebody is typing: the agent, or `by`. */
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
     * Notifies the subscribers of every process. Returns at once and never fails. A signal may be lost under load or
     * when a connection is lost, so a reader that must not miss anything also polls the database.
     */
    readonly publish: (signal: Signal) => Effect.Effect<void>
    /**
     * Subscribed when this returns, until the scope closes. A slow reader loses its oldest signals. A `Changed` without
     * a run means that other signals may have been lost.
     */
    readonly subscribe: (
      conversationId: ConversationId
    ) => Effect.Effect<Queue.Dequeue<Signal>, never, Scope.Scope>
  }
>() {}
