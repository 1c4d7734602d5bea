/** One turn under way: what its steps share, and how they tell what happens. */
import type * as Deferred from "effect/Deferred"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type { CallingTurn } from "../../capabilities/ToolSources.ts"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import type { ProviderProblem, RunPassage } from "../../domain/chat/AgentRun.ts"
import type { ChatTurnRequest, ChatTurnResult, TurnPart } from "../../domain/chat/ChatTurn.ts"
import type { Bill } from "../../domain/billing/Cost.ts"
import type { RuntimeTimeout, TurnFailed } from "../../domain/Errors.ts"
import type { ConversationId, EndUserId, MessageId } from "../../domain/Ids.ts"
import type { StartedTurn, TurnStart } from "../../store/chat/Turns.ts"
import type { TurnSummary } from "../../store/chat/TurnSettlement.ts"
import type { Files } from "./TurnOptions.ts"
import { Masking } from "./masking/Masking.ts"
import { Replay } from "./Replay.ts"
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

/** How a turn may fail once it is under way. */
export type Failure = TurnFailed | RuntimeTimeout

export interface Turn {
  readonly scope: ReadScope
  readonly request: ChatTurnRequest
  readonly opening: TurnStart
  readonly admission: StartedTurn & { readonly periodStart: Date }
  /** Null for a turn without one. */
  readonly conversationId: ConversationId | null
  readonly endUserId: EndUserId | null
  readonly files: Files
  readonly trace: Trace.Trace
  readonly parts: TurnParts
  /** For those who join late. */
  readonly replay: Replay
  readonly cancellation: TurnCancellation.TurnCancellation
  /** Done once the turn is settled. */
  readonly ended: Deferred.Deferred<void>
  /** The outcome, once it has ended; with a result when it succeeded. */
  exit: Exit.Exit<void, Failure> | null
  result: ChatTurnResult | null
  /** True once the model has been called: from then on the turn counts. */
  counted: boolean
  settled: boolean
  /** True once a tool was called that may have changed something: the turn is not repeated. */
  acted: boolean
  /** Passages that the model was shown so far. */
  readonly shown: Array<RunPassage>
  /** Calls to models so far; one without an answer yet is last and has no price. */
  readonly bills: Array<Bill>
  /** For reports. */
  readonly summary: TurnSummary
  /** Why the model asked for a human; null until it has. */
  handoff: string | null
  /** True once a human was found to answer the conversation. */
  takenOver: boolean
  /** Why the model's provider brought no reply; null while it has not failed. */
  providerProblem: ProviderProblem | null
  /** The model of the last round, `provider/model`, where another one answered than was asked for; else null. */
  answeringModel: string | null
  /** The personal data of the turn; null for an agent that masks none. */
  readonly masking: Masking | null
  /** Statements that join the reply's transaction; null where replies go out by the request alone. */
  readonly post: ((reply: Reply, epoch: number) => Effect.Effect<void>) | null
}

/** As tools are told of it. */
export const callingTurn = ({ admission, conversationId, opening, scope }: Turn): CallingTurn => ({
  scope,
  runId: opening.runId,
  conversationId,
  endUserId: admission.endUserId
})

/** To programs that call the API, where the agent says so; what visitors and customers read is the reply alone. */
export const mayShowReasoning = ({ admission, opening }: Turn): boolean =>
  admission.streamReasoning && opening.channel === "api"

/**
 * A turn that stores nothing cannot be joined, so nothing of it is kept for those who join late. What the model thinks is never
 * kept: it is stored nowhere, and a turn that has settled is told again without it.
 */
const keep = (turn: Turn, part: TurnPart) => {
  if (turn.request.persist && part._tag !== "ReasoningDelta") turn.replay.append(part)
}

const newSummary = (): TurnSummary => ({ unanswered: false, stopped: false, firstTextMs: null })

/** What changes while a turn runs, of one that has just begun. */
export const newTurnState = (masking: StartedTurn["masking"]) => ({
  replay: new Replay(),
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

/** Notes when the first text is told. */
const timed = ({ summary, opening }: Turn, parts: ReadonlyArray<TurnPart>, telling: Effect.Effect<void>) =>
  summary.firstTextMs !== null || !parts.some(({ _tag }) => _tag === "TextDelta")
    ? telling
    : Effect.flatMap(Clock.currentTimeMillis, (now) => {
        summary.firstTextMs = Math.max(0, Math.round(now - opening.startedAt.epochMillis))
        return telling
      })

/** Emits what happens. Never waits for the client: a turn has to end although its client does not read. */
export const emit = (turn: Turn, part: TurnPart): Effect.Effect<void> =>
  Effect.suspend(() => {
    keep(turn, part)
    return timed(turn, [part], turn.parts.add(part))
  })

/** Tells parts of the reply, no faster than a client reads them: to be interrupted when the turn's time is up. */
export const say = (turn: Turn, parts: ReadonlyArray<TurnPart>): Effect.Effect<void> =>
  Effect.suspend(() => {
    for (const part of parts) keep(turn, part)
    return timed(turn, parts, turn.parts.addAndWait(parts))
  })

/** Adds an event to the trace and emits it. */
export const record = (turn: Turn, ...event: Parameters<Trace.Trace["record"]>) =>
  Effect.tap(turn.trace.record(...event), (recorded) => emit(turn, { _tag: "RunEvent", event: recorded }))

/** The client has left. A turn that is stored is written to its end all the same; any other is stopped. */
export const left = (turn: Turn) =>
  Effect.zipRight(
    turn.parts.shutdown,
    turn.request.persist ? Effect.void : TurnCancellation.request(turn.cancellation)
  )
