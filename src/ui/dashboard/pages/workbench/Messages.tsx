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
import { TurnFailure } from "./TurnFailure.tsx"
import { Question, Reply } from "./QuestionAndReply.tsx"
import type { TestChat } from "./TestChat.ts"
import type { useTestChat } from "./useTestChat.ts"

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

interface SuggestedQuestionsProps {
  readonly agentId: string
  readonly onAsk: (question: string) => void
}

const SuggestedQuestions = ({ agentId, onAsk }: SuggestedQuestionsProps) => {
  const t = useText(words)
  const { data = [] } = useQuery(questions(agentId))
  if (data.length === 0) return null
  return (
    <section className={css["suggested"]} aria-label={t.ask}>
      <span className={css["soft"]}>{t.ask}</span>
      {/* The questions are in the language of the content, which is unknown. */}
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
  readonly chat: TestChat
  readonly state: ReturnType<typeof useTestChat>
  readonly mayChange: boolean
  /** Content at the beginning of the chat, below the greeting. */
  readonly children?: ReactNode
  /** The reply whose evidence is shown; undefined for none. */
  readonly shownId?: string | undefined
  readonly onShowEvidence?: (id: string, index: number | null) => void
  /** The accessible name, if there are several chats on the page. */
  readonly label?: string
  /** True without a greeting and suggested questions. */
  readonly plain?: boolean
}

export const Messages = ({
  agent,
  children,
  label,
  mayChange,
  onShowEvidence,
  plain = false,
  shownId,
  state: { busy, error, events, isLost, isStopped, messages },
  chat
}: Props) => {
  const t = useText(words)
  const lastQuestion = messages.findLast(({ role }) => role === "user")
  const last = messages.at(-1)
  const { follow, frame, onScroll } = useStickToEnd({
    ownMessageId: lastQuestion?.id,
    keepsStart: last?.role === "assistant"
  })
  const spoken = useSpoken(!busy && last?.role === "assistant" ? last.text : "")
  const isFailed = error !== null && !isLost
  const askAgain = (id: string, text: string) => {
    follow()
    void chat.sendAgain(id, text)
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
        {messages.map((message, index) => {
          if (message.role === "user") {
            return (
              <Question
                key={message.id}
                message={message}
                onAskAgain={busy || !chat.canSendAgain(message) ? null : (text) => askAgain(message.id, text)}
              />
            )
          }
          const question = messages[index - 1]
          const canAskAgain = !busy && question?.role === "user" && chat.canSendAgain(question)
          return (
            <Reply
              key={message.id}
              message={message}
              name={agent.name}
              agentId={agent.id}
              runId={question === undefined ? null : chat.runIdOf(question.id)}
              mayChange={mayChange}
              streaming={busy && message === last}
              isEvidenceShown={message.id === shownId}
              onAskAgain={canAskAgain ? () => askAgain(question.id, question.text) : null}
              onShowEvidence={
                onShowEvidence === undefined ? null : (passage) => onShowEvidence(message.id, passage)
              }
            />
          )
        })}
        {!isFailed || busy ? null : (
          <TurnFailure
            problem={error}
            lastEvent={events.at(-1)}
            isStopped={isStopped}
            onAskAgain={
              lastQuestion === undefined || !chat.canSendAgain(lastQuestion)
                ? null
                : () => askAgain(lastQuestion.id, lastQuestion.text)
            }
          />
        )}
        {messages.length > 0 || busy || plain ? null : (
          <SuggestedQuestions
            agentId={agent.id}
            onAsk={(question) => {
              follow()
              chat.send(question, [])
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
