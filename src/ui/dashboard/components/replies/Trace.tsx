/** Events of a turn, live. */
import type {
  RunEvent as DeclaredEvent,
  RunEventType,
  RunPassage,
  RunTrace
} from "../../../../domain/chat/AgentRun.ts"
import { useFormat } from "../../text/Format.ts"
import { useFailure } from "../../text/useFailure.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Badge, type Tone } from "../Badge.tsx"
import { type PassageScores, Passages } from "./Passages.tsx"
import css from "./Trace.module.css"

export type RunEvent = typeof DeclaredEvent.Encoded

/** If the event has it. */
export const failureIn = ({ payload, type }: RunEvent) => {
  if (type !== "run.failed") return null
  const code = payload?.["code"]
  const provider = payload?.["provider"]
  return {
    code: typeof code === "string" ? code : "TURN_FAILED",
    provider: typeof provider === "string" ? provider : null
  }
}

/** The name of the tool that the event is about. */
const toolOf = ({ payload }: RunEvent): string => {
  const tool = payload?.["tool"]
  return typeof tool === "string" ? tool : "Werkzeug"
}

/** By the event's type; the service labels them in English. */
const germanLabels: Record<RunEventType, (tool: string) => string> = {
  "run.started": () => "Lauf begonnen",
  "retrieval.completed": () => "Wissensbasis durchsucht",
  "model.completed": () => "Modell hat geantwortet",
  "tool.started": (tool) => `${tool} wird aufgerufen`,
  "tool.completed": (tool) => `${tool} hat geantwortet`,
  "tool.failed": (tool) => `${tool} ist fehlgeschlagen`,
  "run.completed": () => "Lauf abgeschlossen",
  "run.failed": () => "Lauf fehlgeschlagen"
}

const words = texts(
  {
    title: "Trace",
    empty: "Ask something: what happens appears here.",
    details: "Details",
    shown: "What the model was shown",
    version: (version: number) => `Version ${version} of the agent`,
    cost: (sum: string) => `Model cost ${sum}`,
    unpriced: "Model cost unknown",
    tokens: (read: string, written: string) => `${read} tokens read, ${written} written`,
    running: "running",
    complete: "done",
    failed: "failed",
    label: (event: RunEvent) => event.label
  },
  {
    title: "Ablauf",
    empty: "Etwas fragen: hier erscheint, was geschieht.",
    details: "Einzelheiten",
    shown: "Was das Modell gesehen hat",
    version: (version: number) => `Version ${version} des Agenten`,
    cost: (sum: string) => `Modellkosten ${sum}`,
    unpriced: "Modellkosten unbekannt",
    tokens: (read: string, written: string) => `${read} Tokens gelesen, ${written} geschrieben`,
    running: "läuft",
    complete: "fertig",
    failed: "fehlgeschlagen",
    label: (event: RunEvent) => germanLabels[event.type]?.(toolOf(event)) ?? event.label
  }
)

const isFound = (value: unknown): value is PassageScores =>
  typeof value === "object" &&
  value !== null &&
  "id" in value &&
  "lexical" in value &&
  "semantic" in value &&
  typeof value.lexical === "number" &&
  typeof value.semantic === "number"

/** The results of a run's searches, with scores. */
export const foundIn = (events: ReadonlyArray<RunEvent>): ReadonlyArray<PassageScores> =>
  events.flatMap(({ payload, type }) => {
    const chunks = type === "retrieval.completed" ? payload?.["chunks"] : undefined
    return Array.isArray(chunks) ? chunks.filter(isFound) : []
  })

const tones: Record<RunEvent["status"], Tone> = { running: "accent", complete: "good", failed: "bad" }

const timeOf = ({ timestamp }: RunEvent) => Date.parse(timestamp)

/** The time of an event since the start of the run, and since the previous event. */
const spanOf = (events: ReadonlyArray<RunEvent>, place: number) => {
  const [first, last] = [events[0], events.at(-1)]
  const event = events[place]
  if (first === undefined || last === undefined || event === undefined) return { start: 0, took: 0, whole: 1 }
  const before = events[Math.max(0, place - 1)] ?? first
  return {
    start: timeOf(before) - timeOf(first),
    took: timeOf(event) - timeOf(before),
    whole: Math.max(1, timeOf(last) - timeOf(first))
  }
}

const countOf = ({ payload }: RunEvent, name: string): number | null => {
  const count = payload?.[name]
  return typeof count === "number" ? count : null
}

interface Props {
  readonly events: ReadonlyArray<RunEvent>
  /** The agent's; null if unknown. */
  readonly version?: number | null
  /** Cost of the models; null if unknown. */
  readonly cost?: (typeof RunTrace.Encoded)["cost"]
  /** Passages that the model was shown, as they were then. */
  readonly passages?: ReadonlyArray<typeof RunPassage.Encoded>
}

const Step = ({ events, place }: { readonly events: ReadonlyArray<RunEvent>; readonly place: number }) => {
  const t = useText(words)
  const why = useFailure()
  const { number, seconds } = useFormat()
  const event = events[place]
  if (event === undefined) return null
  const { start, took, whole } = spanOf(events, place)
  const failure = failureIn(event)
  const [read, written] = [countOf(event, "inputTokens"), countOf(event, "outputTokens")]
  return (
    <li data-status={event.status}>
      <div className={css["line"]}>
        <span className={css["label"]}>{t.label(event)}</span>
        {/* That it is done, or has gone on, its name says. */}
        {event.status === "complete" || (event.status === "running" && place < events.length - 1) ? null : (
          <Badge tone={tones[event.status]}>{t[event.status]}</Badge>
        )}
        <span className={css["soft"]}>{place === 0 ? "" : `+${seconds(took)}`}</span>
      </div>
      {place === 0 ? null : (
        <span aria-hidden className={css["track"]}>
          <span
            style={{
              marginInlineStart: `${(start / whole) * 100}%`,
              width: `${Math.max(1, (took / whole) * 100)}%`
            }}
          />
        </span>
      )}
      {read === null || written === null ? null : (
        <span className={css["soft"]}>{t.tokens(number(read), number(written))}</span>
      )}
      {failure === null ? null : <p className={css["reason"]}>{why(failure)}</p>}
      {event.payload === undefined ? null : (
        <details>
          <summary>{t.details}</summary>
          <pre tabIndex={0}>{JSON.stringify(event.payload, null, 2)}</pre>
        </details>
      )}
    </li>
  )
}

export const Trace = ({ cost = null, events, passages = [], version = null }: Props) => {
  const { money } = useFormat()
  const t = useText(words)
  return (
    <section className={css["trace"]} aria-label={t.title}>
      <h2>{t.title}</h2>
      {version === null ? null : <p className={css["soft"]}>{t.version(version)}</p>}
      {cost === null ? null : (
        <p className={css["soft"]}>
          {cost.nanoUsd === null || cost.unpricedCalls > 0 ? t.unpriced : t.cost(money(cost.nanoUsd))}
        </p>
      )}
      {events.length === 0 ? <p className={css["soft"]}>{t.empty}</p> : null}
      <ol className={css["events"]}>
        {events.map(({ id }, place) => (
          <Step key={id} events={events} place={place} />
        ))}
      </ol>
      {passages.length === 0 ? null : (
        <>
          <h3 className={css["label"]}>{t.shown}</h3>
          <Passages passages={passages} found={foundIn(events)} />
        </>
      )}
    </section>
  )
}
