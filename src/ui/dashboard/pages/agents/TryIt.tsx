/** A conversation with the agent, its citations and, beside it, what happens in each turn. */
import { useChat } from "@ai-sdk/react"
import { useEffect, useRef, useSyncExternalStore } from "react"
import type { Agent } from "../../api/Agents.ts"
import { ApiError } from "../../api/Client.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { CitationChip } from "../../components/CitationChip.tsx"
import { Prose } from "../../components/Prose.tsx"
import { Trace } from "../../components/Trace.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"
import { Advice } from "./Advice.tsx"
import { type Message, resultOf, talkOf } from "./Talk.ts"
import { TryItForm } from "./TryItForm.tsx"
import css from "./TryIt.module.css"

const words = texts(
  {
    conversation: "Conversation",
    you: "You",
    thinking: "The agent is answering …",
    failed: "No answer",
    TURN_FAILED: "The model could not finish its answer. Its provider or its settings may be the reason.",
    RUNTIME_TIMEOUT: "The model did not answer in time."
  },
  {
    conversation: "Gespräch",
    you: "Sie",
    thinking: "Der Agent antwortet …",
    failed: "Keine Antwort",
    TURN_FAILED:
      "Das Modell konnte nicht zu Ende antworten. Es kann am Anbieter oder an den Einstellungen liegen.",
    RUNTIME_TIMEOUT: "Das Modell hat nicht rechtzeitig geantwortet."
  }
)

const textOf = ({ parts }: Message) => parts.map((part) => (part.type === "text" ? part.text : "")).join("")

const Said = ({ message, name }: { readonly message: Message; readonly name: string }) => {
  const t = useText(words)
  const result = resultOf(message)
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
          citation={(index) => {
            const citation = result?.citations.find((one) => one.index === index)
            return citation === undefined ? undefined : <CitationChip citation={citation} />
          }}
        />
      )}
      {files.length === 0 ? null : <span className={css["soft"]}>{files.join(", ")}</span>}
    </article>
  )
}

/** A failure that the stream itself told, by its code, or one of the request. */
const Failed = ({ problem }: { readonly problem: Error }) => {
  const t = useText(words)
  const reason = useReason()(problem)
  const { message } = problem
  const told = message === "TURN_FAILED" || message === "RUNTIME_TIMEOUT" ? t[message] : reason.sentence
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
  const { error, messages, status, stop } = useChat<Message>({ chat: talk.chat })
  const events = useSyncExternalStore(talk.listen, talk.events)
  const busy = status === "submitted" || status === "streaming"
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    end.current?.scrollIntoView({ block: "nearest" })
  }, [messages])
  const last = messages.at(-1)
  return (
    <div className={css["try"]}>
      <section className={css["chat"]} aria-label={t.conversation}>
        <div className={css["messages"]} role="log" aria-live="off" tabIndex={0} aria-label={t.conversation}>
          {agent.greeting === null ? null : (
            <article className={css["reply"]} aria-label={agent.name}>
              <span className={css["author"]}>{agent.name}</span>
              <Prose text={agent.greeting} />
            </article>
          )}
          <Advice agentId={agent.id} mayChange={atLeast(user.role, "admin")} />
          {messages.map((message) => (
            <Said key={message.id} message={message} name={agent.name} />
          ))}
          {error === undefined ? null : <Failed problem={error} />}
          <div ref={end} />
        </div>
        <p role="status" className={busy ? css["soft"] : "visually-hidden"}>
          {busy ? t.thinking : last?.role === "assistant" ? textOf(last) : ""}
        </p>
        <TryItForm
          busy={busy}
          onSend={(text, files) => talk.send(text, files)}
          onStop={() => void stop()}
          onFresh={messages.length === 0 ? null : () => talk.clear()}
        />
      </section>
      <Trace events={events} />
    </div>
  )
}

export default TryIt
