/** A live test chat, and the data of one of its turns. */
import { useQuery } from "@tanstack/react-query"
import { useSyncExternalStore } from "react"
import { trace } from "../../api/Conversations.ts"
import type { Passage } from "../../components/replies/Passages.tsx"
import type { RunEvent } from "../../components/replies/Trace.tsx"
import type { Talk } from "./Talk.ts"
import type { Message } from "./TalkMessage.ts"

export const useTalk = (talk: Talk) => {
  const view = useSyncExternalStore(talk.listen, talk.now)
  return { ...view, busy: view.isOpen || view.isLost }
}

/** One turn: its events, and the passages of its reply. */
export interface TurnView {
  readonly runId: string | null
  readonly events: ReadonlyArray<RunEvent>
  /** Undefined until they are loaded. */
  readonly passages: ReadonlyArray<Passage> | undefined
  readonly citations: Message["citations"]
  readonly version: number | null
  /** Billionths of a US dollar; null if unknown. */
  readonly cost: number | null
}

const costIn = (found: object | undefined): number | null => {
  if (found === undefined || !("cost" in found)) return null
  const { cost } = found
  if (typeof cost !== "object" || cost === null || !("nanoUsd" in cost)) return null
  return typeof cost.nanoUsd === "number" ? cost.nanoUsd : null
}

/** The turn of the user's message and of its reply. */
export const useTurn = (
  talk: Talk,
  question: Message | undefined,
  reply: Message | undefined,
  isRunning: boolean
): TurnView => {
  const runId = question === undefined ? null : talk.runOf(question.id)
  const told = runId === null ? [] : talk.eventsIn(runId)
  const { data } = useQuery({ ...trace(runId ?? ""), enabled: runId !== null && !isRunning })
  return {
    runId,
    events: told.length > 0 ? told : (data?.events ?? []),
    passages: data?.passages,
    citations: reply?.citations ?? [],
    version: data?.agentVersion ?? null,
    cost: costIn(data)
  }
}

/** A number from the last event that has it; null if none has. */
const numberIn = (events: ReadonlyArray<RunEvent>, name: string): number | null => {
  const value = events.findLast(({ payload }) => typeof payload?.[name] === "number")?.payload?.[name]
  return typeof value === "number" ? value : null
}

/** Duration of the turn. */
export const measuresOf = ({ events }: Pick<TurnView, "events">) => {
  const [first, last] = [events[0], events.at(-1)]
  const model = events.findLast(({ payload }) => typeof payload?.["model"] === "string")?.payload?.["model"]
  return {
    milliseconds:
      first === undefined || last === undefined
        ? null
        : Date.parse(last.timestamp) - Date.parse(first.timestamp),
    inputTokens: numberIn(events, "inputTokens"),
    outputTokens: numberIn(events, "outputTokens"),
    model: typeof model === "string" ? model : null,
    /** The turn used unsaved settings. */
    isDraft: first?.payload?.["draft"] !== undefined
  }
}
