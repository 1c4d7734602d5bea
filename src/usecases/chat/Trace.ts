/** The events of one run, recorded in order: what is streamed is what is stored (guarantee G13). */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { RunEvent, RunEventType, RunStatus } from "../../domain/AgentRun.ts"
import type { RunId } from "../../domain/Ids.ts"

export type Payload = Readonly<Record<string, unknown>>

export interface Trace {
  /** Adds the next event and returns it. */
  readonly record: (
    type: RunEventType,
    status: RunStatus,
    label: string,
    payload?: Payload
  ) => Effect.Effect<RunEvent>
  /** All events so far. */
  readonly events: () => ReadonlyArray<RunEvent>
}

export const make = (runId: RunId): Trace => {
  const recorded: Array<RunEvent> = []
  return {
    record: (type, status, label, payload) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const sequence = recorded.length + 1
        const event: RunEvent = {
          id: `${runId}:${sequence}`,
          runId,
          sequence,
          type,
          status,
          label,
          timestamp: DateTime.unsafeMake(now),
          ...(payload === undefined ? {} : { payload })
        }
        recorded.push(event)
        return event
      }),
    events: () => recorded
  }
}
