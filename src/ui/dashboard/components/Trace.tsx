/** What happened in a turn, event by event, while it happens. */
import type {
  RunEvent as DeclaredEvent,
  RunEventType,
  RunPassage,
  RunTrace
} from "../../../domain/chat/AgentRun.ts"
import { useFormat } from "../text/Format.ts"
import { useFailure } from "../text/useFailure.ts"
import { texts, useText } from "../text/Language.tsx"
import { Badge, type Tone } from "./Badge.tsx"
import css from "./Trace.module.css"

export type RunEvent = typeof DeclaredEvent.Encoded

/** Of an event that says so. */
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
    running: "läuft",
    complete: "fertig",
    failed: "fehlgeschlagen",
    label: (event: RunEvent) => germanLabels[event.type]?.(toolOf(event)) ?? event.label
  }
)

const tones: Record<RunEvent["status"], Tone> = { running: "accent", complete: "good", failed: "bad" }

const since = (event: RunEvent, first: RunEvent | undefined) => {
  const milliseconds = Date.parse(event.timestamp) - Date.parse(first?.timestamp ?? event.timestamp)
  return `+${(milliseconds / 1_000).toFixed(2)} s`
}

interface Props {
  readonly events: ReadonlyArray<RunEvent>
  /** Of the agent; null where it is not known. */
  readonly version?: number | null
  /** Of the models; null where it is not known. */
  readonly cost?: (typeof RunTrace.Encoded)["cost"]
  /** What the model was shown of the sources, as it was then. */
  readonly passages?: ReadonlyArray<typeof RunPassage.Encoded>
}

const Passages = ({ passages }: Required<Pick<Props, "passages">>) => {
  const t = useText(words)
  return (
    <>
      <h3 className={css["label"]}>{t.shown}</h3>
      <ol className={css["events"]}>
        {passages.map(({ heading, index, sourceName, text, title, url }) => (
          <li key={index}>
            <div className={css["line"]}>
              <span
                className={css["label"]}
              >{`[${index}] ${heading === "" ? title : `${title} > ${heading}`}`}</span>
              <span className={css["soft"]}>{sourceName}</span>
            </div>
            <details>
              <summary>{url === "" ? t.details : url}</summary>
              <pre tabIndex={0}>{text}</pre>
            </details>
          </li>
        ))}
      </ol>
    </>
  )
}

export const Trace = ({ cost = null, events, passages = [], version = null }: Props) => {
  const { money } = useFormat()
  const t = useText(words)
  const why = useFailure()
  const reasonOf = (event: RunEvent) => {
    const failure = failureIn(event)
    return failure === null ? null : <p className={css["reason"]}>{why(failure)}</p>
  }
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
        {events.map((event, place) => (
          <li key={event.id}>
            <div className={css["line"]}>
              <span className={css["label"]}>{t.label(event)}</span>
              {/* What has gone on runs no more. */}
              {event.status === "running" && place < events.length - 1 ? null : (
                <Badge tone={tones[event.status]}>{t[event.status]}</Badge>
              )}
              <span className={css["soft"]}>{since(event, events[0])}</span>
            </div>
            {reasonOf(event)}
            {event.payload === undefined ? null : (
              <details>
                <summary>{t.details}</summary>
                <pre tabIndex={0}>{JSON.stringify(event.payload, null, 2)}</pre>
              </details>
            )}
          </li>
        ))}
      </ol>
      {passages.length === 0 ? null : <Passages passages={passages} />}
    </section>
  )
}
