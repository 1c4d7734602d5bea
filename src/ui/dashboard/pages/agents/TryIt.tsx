/** A conversation with the agent, its citations and, beside it, what happens in each turn. */
import { useChat } from "@ai-sdk/react"
import { DefaultChatTransport, type UIMessage } from "ai"
import { useEffect, useMemo, useRef, useState } from "react"
import type { Agent } from "../../api/Agents.ts"
import { ApiError, failureOf } from "../../api/Client.ts"
import { type Citation, CitationChip } from "../../components/CitationChip.tsx"
import { Prose } from "../../components/Prose.tsx"
import { type RunEvent, Trace } from "../../components/Trace.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"
import { Advice } from "./Advice.tsx"
import { TryItForm } from "./TryItForm.tsx"
import { TurnForm } from "./TurnForm.ts"
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

interface Result {
  readonly reply: string
  readonly conversationId?: string
  readonly citations: ReadonlyArray<Citation>
}

interface Sent {
  /** Names of the files that went along. */
  readonly files: ReadonlyArray<string>
}

type DataParts = {
  readonly "agent-run-event": RunEvent
  readonly done: { readonly result: Result }
}

type Message = UIMessage<Sent, DataParts>

const textOf = ({ parts }: Message) => parts.map((part) => (part.type === "text" ? part.text : "")).join("")

const resultOf = ({ parts }: Message): Result | undefined => {
  const done = parts.find((part) => part.type === "data-done")
  return done?.data.result
}

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

/** The chat of the AI SDK, on our own stream. */
const useTurns = (agentId: string) => {
  const [events, setEvents] = useState<ReadonlyArray<RunEvent>>([])
  const turn = useMemo(() => new TurnForm(agentId), [agentId])
  const transport = useMemo(
    () =>
      new DefaultChatTransport<Message>({
        api: "/api/v1/chat/stream",
        fetch: async (address, request) => {
          const response = await fetch(address, { ...request, ...turn.request() })
          if (!response.ok) throw await failureOf(response)
          return response
        }
      }),
    [turn]
  )
  const { error, messages, sendMessage, setMessages, status, stop } = useChat<Message>({
    transport,
    onData: (part) => {
      if (part.type === "data-agent-run-event") setEvents((before) => [...before, part.data])
      if (part.type === "data-done") turn.conversationId = part.data.result.conversationId
    }
  })
  const send = (text: string, files: ReadonlyArray<File>) => {
    setEvents([])
    turn.next(text, files)
    void sendMessage({ text, metadata: { files: files.map(({ name }) => name) } })
  }
  const clear = () => {
    turn.conversationId = undefined
    setMessages([])
    setEvents([])
  }
  const busy = status === "submitted" || status === "streaming"
  return { busy, clear, error, events, messages, send, stop } as const
}

interface Props {
  readonly agent: Agent
  readonly mayChange: boolean
}

const TryIt = ({ agent, mayChange }: Props) => {
  const t = useText(words)
  const { busy, clear, error, events, messages, send, stop } = useTurns(agent.id)
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
          <Advice agentId={agent.id} mayChange={mayChange} />
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
          onSend={send}
          onStop={() => void stop()}
          onFresh={messages.length === 0 ? null : clear}
        />
      </section>
      <Trace events={events} />
    </div>
  )
}

export default TryIt
