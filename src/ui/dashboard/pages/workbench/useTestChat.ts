/** A live test chat, and the data of one of its turns. */
import { useQuery } from "@tanstack/react-query"
import { useSyncExternalStore } from "react"
import { trace } from "../../api/Conversations.ts"
import type { Passage } from "../../components/replies/Passages.tsx"
import type { RunEvent } from "../../components/replies/Trace.tsx"
import type { TestChat } from "./TestChat.ts"
import type { Message } from "./ChatMessage.ts"

export const useTestChat = (chat: TestChat) => {
  const view = useSyncExternalStore(chat.subscribe, chat.getView)
  return { ...view, busy: view.isAnswering || view.isLost }
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

const costIn = (run: object | undefined): number | null => {
  if (run === undefined || !("cost" in run)) return null
  const { cost } = run
  if (typeof cost !== "object" || cost === null || !("nanoUsd" in cost)) return null
  return typeof cost.nanoUsd === "number" ? cost.nanoUsd : null
}

/** The turn that began with `question`. */
export const useTurn = (
  chat: TestChat,
  question: Message | undefined,
  reply: Message | undefined,
  isRunning: boolean
): TurnView => {
  const runId = question === undefined ? null : chat.runIdOf(question.id)
  const receivedEvents = runId === null ? [] : chat.eventsOf(runId)
  const { data } = useQuery({ ...trace(runId ?? ""), enabled: runId !== null && !isRunning })
  return {
    runId,
    events: receivedEvents.length > 0 ? receivedEvents : (data?.events ?? []),
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

/** The duration, the tokens and the model of a turn, as far as its events tell them. */
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
