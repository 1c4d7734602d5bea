/** The same question to two versions or two models, with the differences of the answers. */
import { useEffect, useState } from "react"
import { headingPath } from "../../../headingPath.ts"
import type { TrialSettings } from "../../../../domain/agents/Agent.ts"
import type { Agent } from "../../api/Agents.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Select, TextField } from "../../components/Field.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { AskForm } from "./AskForm.tsx"
import css from "./Compare.module.css"
import { Messages } from "./Messages.tsx"
import { type TestChat, testChatOf } from "./TestChat.ts"
import { measuresOf, type TurnView, useTestChat, useTurn } from "./useTestChat.ts"

const words = texts(
  {
    left: "Left",
    right: "Right",
    answers: (side: string) => `Who answers: ${side}`,
    published: (version: number) => `Version ${version}, published`,
    changed: "Your unsaved changes",
    version: (version: number) => `Version ${version}`,
    model: (side: string) => `Another model: ${side}`,
    anyModel: "The model of the settings",
    conversation: (side: string) => `Conversation: ${side}`,
    draft: (name: string) => `Question to compare: ${name}`,
    differences: "What sets the last answers apart",
    measure: "Measure",
    difference: "Difference",
    time: "Time",
    read: "Tokens read",
    written: "Tokens written",
    cost: "Cost",
    passages: "Passages",
    cited: "Cited",
    only: "Passages it alone found",
    hint: "Choose who answers on each side, then ask: both get the same question."
  },
  {
    left: "Links",
    right: "Rechts",
    answers: (side: string) => `Wer antwortet: ${side}`,
    published: (version: number) => `Version ${version}, veröffentlicht`,
    changed: "Ihre ungespeicherten Änderungen",
    version: (version: number) => `Version ${version}`,
    model: (side: string) => `Anderes Modell: ${side}`,
    anyModel: "Das Modell der Einstellungen",
    conversation: (side: string) => `Gespräch: ${side}`,
    draft: (name: string) => `Frage zum Vergleichen: ${name}`,
    differences: "Was die letzten Antworten unterscheidet",
    measure: "Maß",
    difference: "Unterschied",
    time: "Zeit",
    read: "Tokens gelesen",
    written: "Tokens geschrieben",
    cost: "Kosten",
    passages: "Abschnitte",
    cited: "Zitiert",
    only: "Abschnitte, die es allein fand",
    hint: "Auf jeder Seite wählen, wer antwortet, und dann fragen: beide bekommen dieselbe Frage."
  }
)

type Draft = typeof TrialSettings.Encoded

/** Who answers on one side. */
interface Choice {
  /** `published`, `draft` or the number of a version. */
  readonly answers: string
  /** Empty for the model of the settings. */
  readonly model: string
}

const defaultChoices: Readonly<Record<"left" | "right", Choice>> = {
  left: { answers: "published", model: "" },
  right: { answers: "draft", model: "" }
}

const readChoices = (key: string): typeof defaultChoices => {
  try {
    const saved: typeof defaultChoices | null = JSON.parse(sessionStorage.getItem(key) || "null")
    return saved ?? defaultChoices
  } catch {
    return defaultChoices
  }
}

/** What answers on one side: a version, with unsaved settings or another model if they were chosen. */
const trialOf = ({ answers, model }: Choice, draft: Draft | undefined) => {
  const version = /^\d+$/u.test(answers) ? Number(answers) : undefined
  const settings = {
    ...(answers === "draft" ? draft : {}),
    ...(model.trim() === "" ? {} : { model: model.trim() })
  }
  return { version, ...(Object.keys(settings).length === 0 ? {} : { draft: settings }) }
}

const useSide = (chat: TestChat, choice: Choice, draft: Draft | undefined) => {
  const state = useTestChat(chat)
  const trialJson = JSON.stringify(trialOf(choice, draft))
  useEffect(() => {
    const trial: ReturnType<typeof trialOf> = JSON.parse(trialJson)
    chat.setTrial(trial)
  }, [chat, trialJson])
  const last = state.messages.at(-1)
  const question = state.messages.findLast(({ role }) => role === "user")
  const turn = useTurn(chat, question, last?.role === "assistant" ? last : undefined, state.busy)
  return { state, turn }
}

interface DifferencesProps {
  readonly left: TurnView
  readonly right: TurnView
}

const Differences = ({ left, right }: DifferencesProps) => {
  const t = useText(words)
  const { money, number, seconds } = useFormat()
  const [leftMeasures, rightMeasures] = [measuresOf(left), measuresOf(right)]
  const rows = [
    [t.time, leftMeasures.milliseconds, rightMeasures.milliseconds, seconds],
    [t.read, leftMeasures.inputTokens, rightMeasures.inputTokens, number],
    [t.written, leftMeasures.outputTokens, rightMeasures.outputTokens, number],
    [t.cost, left.cost, right.cost, money],
    [t.passages, left.passages?.length ?? null, right.passages?.length ?? null, number],
    [t.cited, left.citations.length, right.citations.length, number]
  ] as const
  const passagesOnlyIn = (view: TurnView, other: TurnView) =>
    (view.passages ?? [])
      .filter(({ chunkId }) => !(other.passages ?? []).some((passage) => passage.chunkId === chunkId))
      .map(({ heading, title }) => (heading === "" ? title : `${title} › ${headingPath(heading)}`))
      .join("; ")
  const uniquePassages = [passagesOnlyIn(left, right), passagesOnlyIn(right, left)] as const
  return (
    <div className={css["differences"]} tabIndex={0} role="group" aria-label={t.differences}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t.measure}</th>
            <th scope="col">{t.left}</th>
            <th scope="col">{t.right}</th>
            <th scope="col">{t.difference}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, leftValue, rightValue, format]) =>
            leftValue === null && rightValue === null ? null : (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{leftValue === null ? "–" : format(leftValue)}</td>
                <td>{rightValue === null ? "–" : format(rightValue)}</td>
                <td>
                  {leftValue === null || rightValue === null || leftValue === rightValue
                    ? "–"
                    : `${rightValue > leftValue ? "+" : "−"}${format(Math.abs(rightValue - leftValue))}`}
                </td>
              </tr>
            )
          )}
          {uniquePassages.every((passages) => passages === "") ? null : (
            <tr>
              <th scope="row">{t.only}</th>
              <td lang="">{uniquePassages[0] === "" ? "–" : uniquePassages[0]}</td>
              <td lang="">{uniquePassages[1] === "" ? "–" : uniquePassages[1]}</td>
              <td>–</td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  )
}

interface Props {
  readonly agent: Agent
  readonly user: User
  /** Unsaved settings; undefined if there are none. */
  readonly draft: Draft | undefined
  /** Versions other than the published one. */
  readonly versions: ReadonlyArray<number>
}

export const Compare = ({ agent, draft, user, versions }: Props) => {
  const t = useText(words)
  const mayChange = atLeast(user.role, "admin")
  const key = `spoke.compare.${user.id}.${agent.id}`
  const [choices, setChoices] = useState(() => readChoices(key))
  const chats = { left: testChatOf(user.id, agent.id, "left"), right: testChatOf(user.id, agent.id, "right") }
  const left = useSide(chats.left, choices.left, draft)
  const right = useSide(chats.right, choices.right, draft)
  const sides = [
    ["left", t.left, chats.left, left],
    ["right", t.right, chats.right, right]
  ] as const
  const isEmpty = left.state.messages.length === 0 && right.state.messages.length === 0
  const busy = left.state.busy || right.state.busy
  // The chosen versions are offered even if they are not among the newest.
  const chosenVersions = [choices.left, choices.right]
    .map(({ answers }) => Number(answers))
    .filter((version) => version > 0 && version !== agent.publishedVersion)
  const options = [
    ["published", t.published(agent.publishedVersion)] as const,
    ...(mayChange ? [["draft", t.changed] as const] : []),
    ...[...new Set([...versions, ...chosenVersions])].map(
      (version) => [String(version), t.version(version)] as const
    )
  ]
  const choose = (side: "left" | "right", change: Partial<Choice>) => {
    const next = { ...choices, [side]: { ...choices[side], ...change } }
    setChoices(next)
    try {
      sessionStorage.setItem(key, JSON.stringify(next))
    } catch {
      // The choice then lasts until the page is left.
    }
  }
  const onBothSides = (act: (chat: TestChat) => void) => {
    act(chats.left)
    act(chats.right)
  }
  return (
    <>
      <div className={css["sides"]}>
        {sides.map(([side, title, chat, { state }]) => (
          <section key={side} className={css["side"]} aria-label={title}>
            <div className={css["choice"]}>
              <Select
                compact
                label={t.answers(title)}
                options={options}
                value={
                  options.some(([id]) => id === choices[side].answers) ? choices[side].answers : "published"
                }
                onChange={(answers) => choose(side, { answers })}
              />
              {mayChange ? (
                <TextField
                  compact
                  label={t.model(title)}
                  placeholder={t.anyModel}
                  value={choices[side].model}
                  onChange={(model) => choose(side, { model })}
                />
              ) : null}
            </div>
            <Messages
              agent={agent}
              chat={chat}
              state={state}
              mayChange={mayChange}
              label={t.conversation(title)}
              plain
            >
              {state.messages.length === 0 ? <p className={css["hint"]}>{t.hint}</p> : null}
            </Messages>
          </section>
        ))}
      </div>
      {isEmpty || busy ? null : <Differences left={left.turn} right={right.turn} />}
      <div className={css["compose"]}>
        <AskForm
          busy={busy}
          draft={{ name: `compare.${agent.id}`, title: t.draft(agent.name) }}
          onSend={(text, files) => onBothSides((chat) => chat.send(text, files))}
          onStop={() => onBothSides((chat) => void chat.stop())}
        />
      </div>
    </>
  )
}
