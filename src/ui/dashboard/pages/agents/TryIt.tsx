/** A conversation with the agent, its citations and, beside it, what happens in each turn. */
import { useChat } from "@ai-sdk/react"
import { useState, useSyncExternalStore } from "react"
import type { Agent } from "../../api/Agents.ts"
import { ApiError } from "../../api/Client.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Button } from "../../components/Button.tsx"
import { CitationChip } from "../../components/CitationChip.tsx"
import { Prose, useSpoken } from "../../components/Prose.tsx"
import { SaveCase } from "../../components/SaveCase.tsx"
import { failureIn, Trace } from "../../components/Trace.tsx"
import { useStickToEnd } from "../../components/useStickToEnd.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useFailure } from "../../text/useFailure.ts"
import { useReason } from "../../text/useReason.ts"
import { Advice } from "./Advice.tsx"
import { citationsOf, type Message, talkOf, textOf } from "./Talk.ts"
import { TryItForm } from "./TryItForm.tsx"
import css from "./TryIt.module.css"

const words = texts(
  {
    draft: (name: string) => `Message to ${name}`,
    conversation: "Conversation",
    you: "You",
    thinking: "The agent is answering …",
    failed: "No answer",
    evidence: "What happened",
    trial: (version: number) => `Version ${version} answers here. Customers have another one.`,
    published: "Back to the published version"
  },
  {
    draft: (name: string) => `Nachricht an ${name}`,
    conversation: "Gespräch",
    you: "Sie",
    thinking: "Der Agent antwortet …",
    failed: "Keine Antwort",
    evidence: "Was geschah",
    trial: (version: number) => `Hier antwortet Version ${version}. Kunden haben eine andere.`,
    published: "Zurück zur veröffentlichten Version"
  }
)

/** Milliseconds between two drawings of a reply that is being written. */
const drawEvery = 50

interface SaidProps {
  readonly message: Message
  readonly name: string
  /** More is to come. */
  readonly streaming: boolean
}

const Said = ({ message, name, streaming }: SaidProps) => {
  const t = useText(words)
  const citations = citationsOf(message)
  const own = message.role === "user"
  const files = message.metadata?.files ?? []
  return (
    <article className={own ? css["own"] : css["reply"]} aria-label={own ? t.you : name}>
      <span className={css["author"]}>{own ? t.you : name}</span>
      {own ? (
        <p className={css["plain"]}>{textOf(message)}</p>
      ) : (
        <Prose
          text={textOf(message)}
          streaming={streaming}
          citation={(index) => {
            const citation = citations.find((one) => one.index === index)
            return citation === undefined ? null : <CitationChip citation={citation} />
          }}
        />
      )}
      {files.length === 0 ? null : <span className={css["soft"]}>{files.join(", ")}</span>}
    </article>
  )
}

interface FailedProps {
  readonly problem: Error
  /** What the turn's trace says of it; null where there was no turn. */
  readonly failure: ReturnType<typeof failureIn>
}

/** A failure that the stream itself told, by its code, or one of the request. */
const Failed = ({ failure, problem }: FailedProps) => {
  const t = useText(words)
  const why = useFailure()
  const reason = useReason()(problem)
  const { message } = problem
  const isTold = message === "TURN_FAILED" || message === "RUNTIME_TIMEOUT"
  const told = isTold ? why(failure ?? { code: message, provider: null }) : reason.sentence
  return (
    <div role="alert" className={css["error"]}>
      <strong>{t.failed}</strong>
      <span>{told}</span>
      {reason.detail === null ? null : <span lang="en">{reason.detail}</span>}
      {problem instanceof ApiError ? <code>{`${problem.code} · ${problem.requestId}`}</code> : null}
    </div>
  )
}

interface Props {
  readonly agent: Agent
  readonly user: User
}

const TryIt = ({ agent, user }: Props) => {
  const t = useText(words)
  const talk = talkOf(user.id, agent.id)
  const [version, setVersion] = useState(talk.version)
  const { error, messages, status, stop } = useChat<Message>({
    chat: talk.chat,
    experimental_throttle: drawEvery
  })
  const events = useSyncExternalStore(talk.listen, talk.events)
  const busy = status === "submitted" || status === "streaming"
  const { follow, frame, onScroll } = useStickToEnd()
  const last = messages.at(-1)
  const spoken = useSpoken(!busy && last?.role === "assistant" ? textOf(last) : "")
  const lastEvent = events.at(-1)
  return (
    <div className={css["try"]}>
      <section className={css["chat"]} aria-label={t.conversation}>
        <div
          ref={frame}
          className={css["messages"]}
          role="log"
          aria-live="off"
          tabIndex={0}
          aria-label={t.conversation}
          onScroll={onScroll}
        >
          {agent.greeting === null ? null : (
            <article className={css["reply"]} aria-label={agent.name}>
              <span className={css["author"]}>{agent.name}</span>
              <Prose text={agent.greeting} />
            </article>
          )}
          <Advice agentId={agent.id} mayChange={atLeast(user.role, "admin")} />
          {messages.map((message) => (
            <Said key={message.id} message={message} name={agent.name} streaming={busy && message === last} />
          ))}
          {error === undefined ? null : (
            <Failed problem={error} failure={lastEvent === undefined ? null : failureIn(lastEvent)} />
          )}
        </div>
        {version === undefined ? null : (
          <p className={css["soft"]}>
            {t.trial(version)}{" "}
            <Button
              kind="quiet"
              onPress={() => {
                talk.tryVersion(undefined)
                setVersion(undefined)
              }}
            >
              {t.published}
            </Button>
          </p>
        )}
        <p role="status" className={busy ? css["soft"] : "visually-hidden"}>
          {busy ? t.thinking : spoken}
        </p>
        <TryItForm
          busy={busy}
          draft={{ name: `try.${agent.id}`, title: t.draft(agent.name) }}
          onSend={(text, files) => {
            follow()
            talk.send(text, files)
          }}
          onStop={() => void stop()}
          onFresh={messages.length === 0 ? null : () => talk.clear()}
        />
      </section>
      <div className={css["evidence"]} tabIndex={0} role="group" aria-label={t.evidence}>
        {busy || lastEvent === undefined || !atLeast(user.role, "admin") ? null : (
          <SaveCase key={lastEvent.runId} agentId={agent.id} runId={lastEvent.runId} />
        )}
        <Trace events={events} />
      </div>
    </div>
  )
}

export default TryIt
