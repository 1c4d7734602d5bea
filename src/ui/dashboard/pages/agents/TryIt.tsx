/** A conversation with the agent, its citations and, beside it, what happens in each turn. */
import { useChat } from "@ai-sdk/react"
import { DefaultChatTransport, type UIMessage } from "ai"
import { type FormEvent, type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react"
import type { Agent } from "../../api/Agents.ts"
import { Button } from "../../components/Button.tsx"
import { type Citation, CitationChip } from "../../components/CitationChip.tsx"
import { Prose } from "../../components/Prose.tsx"
import { type RunEvent, Trace } from "../../components/Trace.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { TurnForm } from "./TurnForm.ts"
import css from "./TryIt.module.css"

const words = texts(
  {
    conversation: "Conversation",
    you: "You",
    ask: "Message",
    placeholder: "Ask the agent something",
    send: "Send",
    stop: "Stop",
    fresh: "New conversation",
    attach: "Attach files",
    attached: (count: number) => (count === 1 ? "1 file" : `${count} files`),
    thinking: "The agent is answering …",
    failed: "No answer"
  },
  {
    conversation: "Gespräch",
    you: "Sie",
    ask: "Nachricht",
    placeholder: "Den Agenten etwas fragen",
    send: "Senden",
    stop: "Anhalten",
    fresh: "Neues Gespräch",
    attach: "Dateien anhängen",
    attached: (count: number) => (count === 1 ? "1 Datei" : `${count} Dateien`),
    thinking: "Der Agent antwortet …",
    failed: "Keine Antwort"
  }
)

interface Result {
  readonly reply: string
  readonly conversationId?: string
  readonly citations: ReadonlyArray<Citation>
}

type DataParts = {
  readonly "agent-run-event": RunEvent
  readonly done: { readonly result: Result }
}

type Message = UIMessage<unknown, DataParts>

const textOf = ({ parts }: Message) => parts.map((part) => (part.type === "text" ? part.text : "")).join("")

const resultOf = ({ parts }: Message): Result | undefined => {
  const done = parts.find((part) => part.type === "data-done")
  return done?.data.result
}

const Said = ({ message, name }: { readonly message: Message; readonly name: string }) => {
  const t = useText(words)
  const result = resultOf(message)
  const own = message.role === "user"
  return (
    <article className={own ? css["own"] : css["reply"]} aria-label={own ? t.you : name}>
      <span className={css["author"]}>{own ? t.you : name}</span>
      <Prose
        text={textOf(message)}
        citation={(index) => {
          const citation = result?.citations.find((one) => one.index === index)
          return citation === undefined ? undefined : <CitationChip citation={citation} />
        }}
      />
    </article>
  )
}

const TryIt = ({ agent }: { readonly agent: Agent }) => {
  const t = useText(words)
  const [text, setText] = useState("")
  const [events, setEvents] = useState<ReadonlyArray<RunEvent>>([])
  const [count, setCount] = useState(0)
  const files = useRef<HTMLInputElement>(null)
  const end = useRef<HTMLDivElement>(null)
  const turn = useMemo(() => new TurnForm(agent.id), [agent.id])
  const transport = useMemo(
    () =>
      new DefaultChatTransport<Message>({
        api: "/api/v1/chat/stream",
        fetch: (address, request) => fetch(address, { ...request, ...turn.request() })
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
  const busy = status === "submitted" || status === "streaming"
  useEffect(() => {
    end.current?.scrollIntoView({ block: "nearest" })
  }, [messages])

  const send = () => {
    const message = text.trim()
    if (message === "" || busy) return
    setEvents([])
    setText("")
    turn.next(message, [...(files.current?.files ?? [])])
    if (files.current !== null) files.current.value = ""
    setCount(0)
    void sendMessage({ text: message })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    send()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
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
          {messages.map((message) => (
            <Said key={message.id} message={message} name={agent.name} />
          ))}
          {error === undefined ? null : (
            <div role="alert" className={css["error"]}>
              <strong>{t.failed}</strong>
              <span>{error.message}</span>
            </div>
          )}
          <div ref={end} />
        </div>
        <p role="status" className={busy ? css["soft"] : "visually-hidden"}>
          {busy ? t.thinking : last?.role === "assistant" ? textOf(last) : ""}
        </p>
        <form className={css["form"]} onSubmit={submit}>
          <textarea
            aria-label={t.ask}
            placeholder={t.placeholder}
            rows={2}
            value={text}
            onChange={({ target }) => setText(target.value)}
            onKeyDown={onKeyDown}
          />
          <div className={css["actions"]}>
            <label className={css["attach"]}>
              <input
                ref={files}
                type="file"
                multiple
                accept="image/jpeg,image/png,image/webp,image/gif,application/pdf"
                className="visually-hidden"
                onChange={({ target }) => setCount(target.files?.length ?? 0)}
              />
              {count === 0 ? t.attach : t.attached(count)}
            </label>
            <Button
              kind="quiet"
              onPress={() => {
                turn.conversationId = undefined
                setMessages([])
                setEvents([])
              }}
            >
              {t.fresh}
            </Button>
            {busy ? (
              <Button onPress={() => void stop()}>{t.stop}</Button>
            ) : (
              <Button kind="primary" type="submit">
                {t.send}
              </Button>
            )}
          </div>
        </form>
      </section>
      <Trace events={events} />
    </div>
  )
}

export default TryIt
