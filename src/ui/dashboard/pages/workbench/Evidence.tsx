/** Evidence of a reply: its passages, its events, and the recorded run. */
import { useEffect, useRef } from "react"
import { Badge } from "../../components/Badge.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Passages } from "../../components/replies/Passages.tsx"
import { passageScoresIn, Trace } from "../../components/replies/Trace.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Evidence.module.css"
import { measuresOf, type TurnView } from "./useTestChat.ts"

const words = texts(
  {
    title: "Evidence",
    empty: "Ask something: the passages that were found, and each step of the answer, appear here.",
    passages: "Passages",
    none: "No passage was found.",
    looking: "The passages appear when the answer is complete.",
    time: "Time",
    tokens: "Tokens",
    cost: "Cost",
    model: "Model",
    version: "Version",
    draft: "With unsaved changes",
    raw: "Raw JSON"
  },
  {
    title: "Belege",
    empty: "Etwas fragen: hier erscheinen die gefundenen Abschnitte und jeder Schritt der Antwort.",
    passages: "Abschnitte",
    none: "Kein Abschnitt wurde gefunden.",
    looking: "Die Abschnitte erscheinen, wenn die Antwort fertig ist.",
    time: "Zeit",
    tokens: "Tokens",
    cost: "Kosten",
    model: "Modell",
    version: "Version",
    draft: "Mit ungespeicherten Änderungen",
    raw: "Rohes JSON"
  }
)

const Facts = ({ turn }: { readonly turn: TurnView }) => {
  const t = useText(words)
  const { money, number, seconds } = useFormat()
  const { inputTokens, isDraft, milliseconds, model, outputTokens } = measuresOf(turn)
  const facts = [
    [t.time, milliseconds === null ? null : seconds(milliseconds)],
    [
      t.tokens,
      inputTokens === null || outputTokens === null
        ? null
        : `${number(inputTokens)} + ${number(outputTokens)}`
    ],
    [t.cost, turn.cost === null ? null : money(turn.cost)],
    [t.model, model],
    [t.version, turn.version === null ? null : String(turn.version)]
  ] as const
  return (
    <dl className={css["facts"]}>
      {facts.map(([name, value]) =>
        value === null ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {value}
              {name === t.version && isDraft ? <Badge tone="warn">{t.draft}</Badge> : null}
            </dd>
          </div>
        )
      )}
    </dl>
  )
}

interface Props {
  readonly turn: TurnView
  readonly isRunning: boolean
  /** The passage to scroll to. A new object with the same number scrolls to it again. */
  readonly marked: { readonly index: number | null } | null
}

export const Evidence = ({ isRunning, marked, turn }: Props) => {
  const t = useText(words)
  const container = useRef<HTMLDivElement>(null)
  const { citations, events, passages } = turn
  const hasPassages = passages !== undefined
  useEffect(() => {
    if (marked === null || marked.index === null || !hasPassages) return
    const card = container.current?.querySelector(`[data-passage="${marked.index}"]`)
    const reducesMotion = window.matchMedia("(prefers-reduced-motion: reduce)").matches
    card?.scrollIntoView({ block: "center", behavior: reducesMotion ? "auto" : "smooth" })
  }, [marked, hasPassages])
  return (
    <div ref={container} className={css["evidence"]} tabIndex={0} role="group" aria-label={t.title}>
      {events.length === 0 ? <p className={css["empty"]}>{t.empty}</p> : <Facts turn={turn} />}
      {events.length === 0 ? null : (
        <section className={css["part"]} aria-label={t.passages}>
          <h2>{t.passages}</h2>
          {passages === undefined || (isRunning && passages.length === 0) ? (
            <p className={css["empty"]}>{t.looking}</p>
          ) : passages.length === 0 ? (
            <p className={css["empty"]}>{t.none}</p>
          ) : (
            <Passages
              passages={passages}
              scores={passageScoresIn(events)}
              citations={citations}
              highlighted={marked?.index ?? null}
            />
          )}
        </section>
      )}
      {events.length === 0 ? null : <Trace runId={turn.runId} events={events} />}
      {events.length === 0 ? null : (
        <details className={css["raw"]}>
          <summary>{t.raw}</summary>
          <Copyable label={t.raw} value={JSON.stringify({ events, passages, citations }, null, 2)} />
        </details>
      )}
    </div>
  )
}
