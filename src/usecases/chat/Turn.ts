/** One turn under way: what its steps share, and how they tell what happens. */
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { AgentScope } from "../../domain/Access.ts"
import type { ProviderProblem } from "../../domain/AgentRun.ts"
import type { ChatTurnRequest, ChatTurnResult, TurnPart } from "../../domain/ChatTurn.ts"
import { RuntimeTimeout, type TurnFailed } from "../../domain/Errors.ts"
import type { ConversationId, EndUserId, MessageId } from "../../domain/Ids.ts"
import type { Admission, Opening } from "../../store/Turns.ts"
import type { Files } from "./Extras.ts"
import type { Parts } from "./Parts.ts"
import type { Replay } from "./Replay.ts"
import type { Stop } from "./Stop.ts"
import type * as Trace from "./Trace.ts"

/** A reply as it is written. */
export interface Reply {
  readonly id: MessageId
  readonly content: string
  /** True when the reply hands the conversation to a human. */
  readonly handedOff: boolean
}

export const runtimeTimeout = () => new RuntimeTimeout({ message: "The chat runtime took too long." })

/** How a turn may fail once it is under way. */
export type Failure = TurnFailed | RuntimeTimeout

export interface Turn {
  readonly scope: AgentScope
  readonly request: ChatTurnRequest
  readonly opening: Opening
  readonly admission: Admission & { readonly periodStart: Date }
  /** Null for a turn without one. */
  readonly conversationId: ConversationId | null
  readonly endUserId: EndUserId | null
  readonly files: Files
  readonly trace: Trace.Trace
  readonly parts: Parts
  /** For those who join late. */
  readonly replay: Replay
  /** Done once somebody wants the turn to stop. */
  readonly stop: Stop
  /** Done once the turn is settled. */
  readonly ended: Deferred.Deferred<void>
  /** How it ended, once it has; the result is there when it succeeded. */
  exit: Exit.Exit<void, Failure> | null
  result: ChatTurnResult | null
  /** True once the model has been called: from then on the turn counts. */
  counted: boolean
  settled: boolean
  /** True once a tool was called that may have changed something: the turn is not repeated. */
  acted: boolean
  /** Why the model asked for a human; null until it has. */
  handoff: string | null
  /** True once somebody else was found to answer the conversation. */
  takenOver: boolean
  /** Why the model's provider brought no reply; null while it has not failed. */
  providerProblem: ProviderProblem | null
  /** What joins the transaction of the reply; null where replies go out by nothing but the request. */
  readonly post: ((reply: Reply, epoch: number) => Effect.Effect<void>) | null
}

/**
 * To the client of the turn, and to whoever joins late; a turn that stores nothing cannot be joined. Said at once; what is
 * returned waits for a client that is far behind, and is `Effect.void` itself where none is.
 */
const told = (turn: Turn, part: TurnPart): Effect.Effect<void> => {
  if (turn.request.persist) turn.replay.append(part)
  return turn.parts.add(part)
}

/** Tells what happens. Waits for nobody: a turn has to end although its client does not read. */
export const emit = (turn: Turn, part: TurnPart): Effect.Effect<void> => {
  told(turn, part)
  return Effect.void
}

/** Tells a part of the reply, no faster than a client reads it: to be interrupted when the turn's time is up. */
export const say = told

/** Adds an event to the trace and emits it. */
export const record = (turn: Turn, ...event: Parameters<Trace.Trace["record"]>) =>
  Effect.tap(turn.trace.record(...event), (recorded) => emit(turn, { _tag: "RunEvent", event: recorded }))

/** Nobody reads on. What is to be stored is written to its end all the same; of anything else nobody would know. */
export const left = (turn: Turn) =>
  Effect.zipRight(turn.parts.shutdown, turn.request.persist ? Effect.void : turn.stop.wish)

/** `effect`, interrupted by a wish to stop, which then goes on as `otherwise`, or by the turn's time being up. */
export const unlessStopped = <A, E, R, A2, E2, R2>(
  turn: Turn,
  effect: Effect.Effect<A, E, R>,
  otherwise: Effect.Effect<A2, E2, R2>
): Effect.Effect<A | A2, E | E2 | RuntimeTimeout, R | R2> =>
  turn.stop.unless(effect, (why): Effect.Effect<A2, E2 | RuntimeTimeout, R2> =>
    why === "late" ? Effect.fail(runtimeTimeout()) : otherwise
  )

/** What a stream says, told as a running turn tells it. */
export const telling = (parts: Stream.Stream<TurnPart, Failure>) => ({
  parts,
  tell: (onParts: (come: Iterable<TurnPart>) => Effect.Effect<void>) => Stream.runForEachChunk(parts, onParts)
})
