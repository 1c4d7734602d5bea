/** The events of one run, recorded in order. The same events are streamed and stored. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { RunEvent, RunEventType, RunStatus } from "../../domain/chat/AgentRun.ts"
import type { RunId } from "../../domain/Ids.ts"

type Payload = Readonly<Record<string, unknown>>

type MakeEvent = (
  type: RunEventType,
  status: RunStatus,
  label: string,
  payload?: Payload
) => Effect.Effect<RunEvent>

export interface Trace {
  /** Adds the next event and returns it. */
  readonly record: MakeEvent
  /** Builds the next event without adding it: what it reports is not certain yet. */
  readonly draft: MakeEvent
  /** Events that are not known to be stored. The first one is stored when the turn begins. */
  readonly unstored: () => ReadonlyArray<RunEvent>
  /** Marks `events`, which {@link unstored} returned, as stored. */
  readonly stored: (events: ReadonlyArray<RunEvent>) => void
}

export const make = (runId: RunId): Trace => {
  const recorded: Array<RunEvent> = []
  let storedCount = 1
  const draft: MakeEvent = (type, status, label, payload) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const sequence = recorded.length + 1
      return {
        id: `${runId}:${sequence}`,
        runId,
        sequence,
        type,
        status,
        label,
        timestamp: DateTime.unsafeMake(now),
        ...(payload === undefined ? {} : { payload })
      }
    })
  return {
    draft,
    record: (...event) => Effect.tap(draft(...event), (made) => Effect.sync(() => void recorded.push(made))),
    unstored: () => recorded.slice(storedCount),
    stored: (events) => {
      storedCount = Math.max(storedCount, events.at(-1)?.sequence ?? 0)
    }
  }
}
