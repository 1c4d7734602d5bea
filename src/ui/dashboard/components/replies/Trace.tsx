/** The events of a run, updated while it is running. */
import type {
  RunEvent as DeclaredEvent,
  RunEventType,
  RunPassage,
  RunTrace
} from "../../../../domain/chat/AgentRun.ts"
import { useFormat } from "../../text/Format.ts"
import { useFailure } from "../../text/useFailure.ts"
import { texts, useText } from "../../text/Language.tsx"
import { CopyableId } from "../CopyableId.tsx"
import { Badge, type Tone } from "../Badge.tsx"
import { type PassageScores, Passages } from "./Passages.tsx"
import css from "./Trace.module.css"

export type RunEvent = typeof DeclaredEvent.Encoded

/** The failure in an event; null for other events. */
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

/** German labels by the event's type. The service's labels are English. */
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
    run: "Run ID",
    shown: "What the model was shown",
    version: (version: number) => `Version ${version} of the agent`,
    cost: (sum: string) => `Model cost ${sum}`,
    unpriced: "Model cost unknown",
    tokens: (inputTokens: string, outputTokens: string) =>
      `${inputTokens} tokens read, ${outputTokens} written`,
    running: "Running",
    complete: "Done",
    failed: "Failed",
    label: (event: RunEvent) => event.label
  },
  {
    title: "Ablauf",
    empty: "Etwas fragen: hier erscheint, was geschieht.",
    details: "Einzelheiten",
    run: "ID des Laufs",
    shown: "Was das Modell gesehen hat",
    version: (version: number) => `Version ${version} des Agenten`,
    cost: (sum: string) => `Modellkosten ${sum}`,
    unpriced: "Modellkosten unbekannt",
    tokens: (inputTokens: string, outputTokens: string) =>
      `${inputTokens} Tokens gelesen, ${outputTokens} geschrieben`,
    running: "Läuft",
    complete: "Fertig",
    failed: "Fehlgeschlagen",
    label: (event: RunEvent) => germanLabels[event.type]?.(toolOf(event)) ?? event.label
  }
)

const isPassageScores = (value: unknown): value is PassageScores =>
  typeof value === "object" &&
  value !== null &&
  "id" in value &&
  "lexical" in value &&
  "semantic" in value &&
  typeof value.lexical === "number" &&
  typeof value.semantic === "number"

/** The scores of the passages that the run's searches found. */
export const passageScoresIn = (events: ReadonlyArray<RunEvent>): ReadonlyArray<PassageScores> =>
  events.flatMap(({ payload, type }) => {
    const chunks = type === "retrieval.completed" ? payload?.["chunks"] : undefined
    return Array.isArray(chunks) ? chunks.filter(isPassageScores) : []
  })

const tones: Record<RunEvent["status"], Tone> = { running: "accent", complete: "good", failed: "bad" }

const timeOf = ({ timestamp }: RunEvent) => Date.parse(timestamp)

/** When the previous event happened, the time from it to this event, and the duration of the run. */
const timingOf = (events: ReadonlyArray<RunEvent>, index: number) => {
  const [first, last] = [events[0], events.at(-1)]
  const event = events[index]
  if (first === undefined || last === undefined || event === undefined)
    return { startMs: 0, durationMs: 0, totalMs: 1 }
  const previous = events[Math.max(0, index - 1)] ?? first
  return {
    startMs: timeOf(previous) - timeOf(first),
    durationMs: timeOf(event) - timeOf(previous),
    totalMs: Math.max(1, timeOf(last) - timeOf(first))
  }
}

const tokenCountOf = ({ payload }: RunEvent, name: string): number | null => {
  const count = payload?.[name]
  return typeof count === "number" ? count : null
}

interface Props {
  /** Null if it is unknown. */
  readonly runId?: string | null
  readonly events: ReadonlyArray<RunEvent>
  /** The version of the agent; null if unknown. */
  readonly version?: number | null
  /** Cost of the model calls; null if unknown. */
  readonly cost?: (typeof RunTrace.Encoded)["cost"]
  /** The passages that the model got, as they were during the run. */
  readonly passages?: ReadonlyArray<typeof RunPassage.Encoded>
}

const Step = ({ events, index }: { readonly events: ReadonlyArray<RunEvent>; readonly index: number }) => {
  const t = useText(words)
  const failureText = useFailure()
  const { number, seconds } = useFormat()
  const event = events[index]
  if (event === undefined) return null
  const { startMs, durationMs, totalMs } = timingOf(events, index)
  const failure = failureIn(event)
  const [inputTokens, outputTokens] = [
    tokenCountOf(event, "inputTokens"),
    tokenCountOf(event, "outputTokens")
  ]
  return (
    <li data-status={event.status}>
      <div className={css["line"]}>
        <span className={css["label"]}>{t.label(event)}</span>
        {/* No badge if the event is complete or another one followed. */}
        {event.status === "complete" || (event.status === "running" && index < events.length - 1) ? null : (
          <Badge tone={tones[event.status]}>{t[event.status]}</Badge>
        )}
        <span className={css["soft"]}>{index === 0 ? "" : `+${seconds(durationMs)}`}</span>
      </div>
      {index === 0 ? null : (
        <span aria-hidden className={css["track"]}>
          <span
            style={{
              marginInlineStart: `${(startMs / totalMs) * 100}%`,
              width: `${Math.max(1, (durationMs / totalMs) * 100)}%`
            }}
          />
        </span>
      )}
      {inputTokens === null || outputTokens === null ? null : (
        <span className={css["soft"]}>{t.tokens(number(inputTokens), number(outputTokens))}</span>
      )}
      {failure === null ? null : <p className={css["reason"]}>{failureText(failure)}</p>}
      {event.payload === undefined ? null : (
        <details>
          <summary>{t.details}</summary>
          <pre tabIndex={0}>{JSON.stringify(event.payload, null, 2)}</pre>
        </details>
      )}
    </li>
  )
}

export const Trace = ({ cost = null, events, passages = [], runId = null, version = null }: Props) => {
  const { money } = useFormat()
  const t = useText(words)
  return (
    <section className={css["trace"]} aria-label={t.title}>
      <h2>{t.title}</h2>
      {runId === null ? null : (
        <p className={css["soft"]}>
          {t.run}: <CopyableId id={runId} label={t.run} />
        </p>
      )}
      {version === null ? null : <p className={css["soft"]}>{t.version(version)}</p>}
      {cost === null ? null : (
        <p className={css["soft"]}>
          {cost.nanoUsd === null || cost.unpricedCalls > 0 ? t.unpriced : t.cost(money(cost.nanoUsd))}
        </p>
      )}
      {events.length === 0 ? <p className={css["soft"]}>{t.empty}</p> : null}
      <ol className={css["events"]}>
        {events.map(({ id }, index) => (
          <Step key={id} events={events} index={index} />
        ))}
      </ol>
      {passages.length === 0 ? null : (
        <>
          <h3 className={css["label"]}>{t.shown}</h3>
          <Passages passages={passages} scores={passageScoresIn(events)} />
        </>
      )}
    </section>
  )
}
