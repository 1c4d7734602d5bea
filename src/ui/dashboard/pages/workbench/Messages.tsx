/** The messages of a test chat, and suggestions while there are none. */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import type { Agent } from "../../api/Agents.ts"
import { questions } from "../../api/Widgets.ts"
import { Button } from "../../components/Button.tsx"
import { Prose, useSpoken } from "../../components/replies/Prose.tsx"
import { useStickToEnd } from "../../components/replies/useStickToEnd.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Chat.module.css"
import { Failed } from "./Failed.tsx"
import { Question, Reply } from "./Said.tsx"
import type { Talk } from "./Talk.ts"
import type { useTalk } from "./useTalk.ts"

const words = texts(
  {
    conversation: "Conversation",
    thinking: "The agent is answering …",
    lost: "The connection was lost. The answer goes on as soon as it is back.",
    ask: "Ask something its sources answer"
  },
  {
    conversation: "Gespräch",
    thinking: "Der Agent antwortet …",
    lost: "Die Verbindung ist abgerissen. Die Antwort geht weiter, sobald sie wieder da ist.",
    ask: "Etwas fragen, was die Quellen beantworten"
  }
)

interface SuggestedProps {
  readonly agentId: string
  readonly onAsk: (question: string) => void
}

const Suggested = ({ agentId, onAsk }: SuggestedProps) => {
  const t = useText(words)
  const { data = [] } = useQuery(questions(agentId))
  if (data.length === 0) return null
  return (
    <section className={css["suggested"]} aria-label={t.ask}>
      <span className={css["soft"]}>{t.ask}</span>
      {/* In the language of the content, which is unknown. */}
      <ul lang="">
        {data.map((question) => (
          <li key={question}>
            <Button onClick={() => onAsk(question)}>{question}</Button>
          </li>
        ))}
      </ul>
    </section>
  )
}

interface Props {
  readonly agent: Agent
  readonly talk: Talk
  readonly state: ReturnType<typeof useTalk>
  readonly mayChange: boolean
  /** Content at the beginning of the chat, below the greeting. */
  readonly children?: ReactNode
  /** The reply whose evidence is shown; undefined for none. */
  readonly shownId?: string | undefined
  readonly onShow?: (id: string, index: number | null) => void
  /** For one of several chats on the page. */
  readonly label?: string
  /** Questions are suggested in another place. */
  readonly plain?: boolean
}

export const Messages = ({
  agent,
  children,
  label,
  mayChange,
  onShow,
  plain = false,
  shownId,
  state: { busy, error, events, isLost, isStopped, messages },
  talk
}: Props) => {
  const t = useText(words)
  const asked = messages.findLast(({ role }) => role === "user")
  const { follow, frame, onScroll } = useStickToEnd(asked?.id)
  const last = messages.at(-1)
  const spoken = useSpoken(!busy && last?.role === "assistant" ? last.text : "")
  const isFailed = error !== null && !isLost
  const again = (id: string, text: string) => {
    follow()
    talk.sendAgain(id, text)
  }
  return (
    <>
      <div
        ref={frame}
        className={css["messages"]}
        role="log"
        aria-live="off"
        tabIndex={0}
        aria-label={label ?? t.conversation}
        onScroll={onScroll}
      >
        {agent.greeting === null || plain ? null : (
          <article className={css["reply"]} aria-label={agent.name}>
            <span className={css["author"]}>{agent.name}</span>
            <Prose text={agent.greeting} />
          </article>
        )}
        {children}
        {messages.map((message, place) => {
          if (message.role === "user") {
            return (
              <Question
                key={message.id}
                message={message}
                onAgain={busy ? null : (text) => again(message.id, text)}
              />
            )
          }
          const question = messages[place - 1]
          const mayAsk = !busy && question?.role === "user" && question.files.length === 0
          return (
            <Reply
              key={message.id}
              message={message}
              name={agent.name}
              agentId={agent.id}
              runId={question === undefined ? null : talk.runOf(question.id)}
              mayChange={mayChange}
              streaming={busy && message === last}
              isShown={message.id === shownId}
              onAgain={mayAsk ? () => again(question.id, question.text) : null}
              onShow={onShow === undefined ? null : (index) => onShow(message.id, index)}
            />
          )
        })}
        {!isFailed || busy ? null : (
          <Failed
            problem={error}
            last={events.at(-1)}
            isStopped={isStopped}
            onAgain={
              // Its files are not here any more.
              asked === undefined || asked.files.length > 0 ? null : () => again(asked.id, asked.text)
            }
          />
        )}
        {messages.length > 0 || busy || plain ? null : (
          <Suggested
            agentId={agent.id}
            onAsk={(question) => {
              follow()
              talk.send(question, [])
            }}
          />
        )}
      </div>
      <p role="status" className={busy ? css["status"] : "visually-hidden"}>
        {isLost ? t.lost : busy ? t.thinking : spoken}
      </p>
    </>
  )
}
