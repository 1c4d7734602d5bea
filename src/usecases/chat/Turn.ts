/** State of one running turn, shared by its steps, and the functions by which they emit parts. */
import type * as Deferred from "effect/Deferred"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type { CallingTurn } from "../../capabilities/ToolSources.ts"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import type { ProviderProblem, RunPassage } from "../../domain/chat/AgentRun.ts"
import type { ChatTurnRequest, ChatTurnResult, TurnFailure, TurnPart } from "../../domain/chat/ChatTurn.ts"
import type { Bill } from "../../domain/billing/Cost.ts"
import type { ConversationId, EndUserId, MessageId } from "../../domain/Ids.ts"
import type { StartedTurn, TurnStart } from "../../store/chat/Turns.ts"
import type { TurnSummary } from "../../store/chat/TurnSettlement.ts"
import type { Files } from "./TurnOptions.ts"
import { Masking } from "./masking/Masking.ts"
import { PartBuffer } from "./PartBuffer.ts"
import type * as Trace from "./Trace.ts"
import * as TurnCancellation from "./TurnCancellation.ts"
import type { TurnParts } from "./TurnParts.ts"

/** A reply as it is written. */
export interface Reply {
  readonly id: MessageId
  readonly content: string
  /** True when the reply hands the conversation to a human. */
  readonly handedOff: boolean
}

export interface Turn {
  readonly scope: ReadScope
  readonly request: ChatTurnRequest
  readonly opening: TurnStart
  readonly admission: StartedTurn & { readonly periodStart: Date }
  /** Null for a turn without a conversation. */
  readonly conversationId: ConversationId | null
  readonly endUserId: EndUserId | null
  readonly files: Files
  readonly trace: Trace.Trace
  readonly parts: TurnParts
  /** Parts so far, for readers that join late. */
  readonly buffer: PartBuffer
  readonly cancellation: TurnCancellation.TurnCancellation
  /** Completed once the turn is settled. */
  readonly ended: Deferred.Deferred<void>
  /** The outcome once the turn has ended; `result` is set when it succeeded. */
  exit: Exit.Exit<void, TurnFailure> | null
  result: ChatTurnResult | null
  /** True once the model has been called: the turn then counts against the quota. */
  counted: boolean
  settled: boolean
  /** True once a tool was called that may have had effects: the turn is not retried. */
  acted: boolean
  /** Passages that the model has been shown so far. */
  readonly shown: Array<RunPassage>
  /** Model calls so far. The last one has no price until its answer has come. */
  readonly bills: Array<Bill>
  /** Figures for reports. */
  readonly summary: TurnSummary
  /** Reason of the model's request for a human; null while there is none. */
  handoff: string | null
  /** True once a human answers the conversation. */
  takenOver: boolean
  /** Why the model's provider returned no reply; null while it has not failed. */
  providerProblem: ProviderProblem | null
  /** The model of the last round as `provider/model`, when another one answered than was requested; else null. */
  answeringModel: string | null
  /** Masking of personal data; null for an agent that masks none. */
  readonly masking: Masking | null
  /** Statements of the reply's transaction; null where the reply is returned by the request only. */
  readonly post: ((reply: Reply, epoch: number) => Effect.Effect<void>) | null
}

/** The turn's data that tools receive. */
export const callingTurn = ({ admission, conversationId, opening, scope }: Turn): CallingTurn => ({
  scope,
  runId: opening.runId,
  conversationId,
  endUserId: admission.endUserId
})

/**
 * True when reasoning is streamed: only to API programs, and only if the agent allows it. Visitors and customers get
 * the reply alone.
 */
export const mayShowReasoning = ({ admission, opening }: Turn): boolean =>
  admission.streamReasoning && opening.channel === "api"

/**
 * Keeps a part for readers that join late. A turn that stores nothing cannot be joined, so nothing of it is kept.
 * Reasoning is never kept, because it is not stored: a settled turn is replayed without it.
 */
const bufferPart = (turn: Turn, part: TurnPart) => {
  if (turn.request.persist && part._tag !== "ReasoningDelta") turn.buffer.append(part)
}

const newSummary = (): TurnSummary => ({ unanswered: false, stopped: false, firstTextMs: null })

/** Mutable state of a turn that has just begun. */
export const newTurnState = (masking: StartedTurn["masking"]) => ({
  buffer: new PartBuffer(),
  exit: null,
  result: null,
  counted: false,
  settled: false,
  acted: false,
  shown: [],
  bills: [],
  summary: newSummary(),
  handoff: null,
  takenOver: false,
  providerProblem: null,
  answeringModel: null,
  masking: masking === null ? null : new Masking(masking)
})

/** Records the time of the first text. */
const recordFirstText = (
  { summary, opening }: Turn,
  parts: ReadonlyArray<TurnPart>,
  emitting: Effect.Effect<void>
) =>
  summary.firstTextMs !== null || !parts.some(({ _tag }) => _tag === "TextDelta")
    ? emitting
    : Effect.flatMap(Clock.currentTimeMillis, (now) => {
        summary.firstTextMs = Math.max(0, Math.round(now - opening.startedAt.epochMillis))
        return emitting
      })

/** Emits a part at once, without backpressure: a turn has to end although its client does not read. */
export const emit = (turn: Turn, part: TurnPart): Effect.Effect<void> =>
  Effect.suspend(() => {
    bufferPart(turn, part)
    return recordFirstText(turn, [part], turn.parts.add(part))
  })

/** Emits parts of the reply with backpressure from the client. Interrupted at the turn's time-out. */
export const emitWithBackpressure = (turn: Turn, parts: ReadonlyArray<TurnPart>): Effect.Effect<void> =>
  Effect.suspend(() => {
    for (const part of parts) bufferPart(turn, part)
    return recordFirstText(turn, parts, turn.parts.addAndWait(parts))
  })

/** Adds an event to the trace and emits it. */
export const record = (turn: Turn, ...event: Parameters<Trace.Trace["record"]>) =>
  Effect.tap(turn.trace.record(...event), (recorded) => emit(turn, { _tag: "RunEvent", event: recorded }))

/** The client has disconnected. A turn that is stored goes on to its end; any other is stopped. */
export const onDisconnect = (turn: Turn) =>
  Effect.zipRight(
    turn.parts.shutdown,
    turn.request.persist ? Effect.void : TurnCancellation.request(turn.cancellation)
  )
