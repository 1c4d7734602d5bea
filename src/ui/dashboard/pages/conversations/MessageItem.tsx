/** One message: its author, time, text, files, feedback and delivery state. */
import type { ReactNode } from "react"
import { headingPath } from "../../../headingPath.ts"
import { attachmentAddress, type Feedback, type Message } from "../../api/Conversations.ts"
import { CitationChip } from "../../components/replies/CitationChip.tsx"
import { Prose } from "../../components/replies/Prose.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useFailure } from "../../text/useFailure.ts"
import css from "./MessageItem.module.css"

const words = texts(
  {
    customer: "Customer",
    agent: "Agent",
    human: "Team",
    system: "Automatic",
    sources: "Sources",
    files: "Files",
    pending: "On its way",
    sent: "Sent",
    delivered: "Delivered",
    read: "Read",
    helpful: "The customer found this helpful",
    unhelpful: "The customer found this not helpful",
    unanswered: "No answer",
    cancelled: "Not sent: somebody else answers",
    failed: (reason: string | null) => (reason === null ? "Not delivered" : `Not delivered: ${reason}`)
  },
  {
    customer: "Kunde",
    agent: "Agent",
    human: "Team",
    system: "Automatisch",
    sources: "Quellen",
    files: "Dateien",
    pending: "Unterwegs",
    sent: "Gesendet",
    delivered: "Zugestellt",
    read: "Gelesen",
    helpful: "Der Kunde fand das hilfreich",
    unhelpful: "Der Kunde fand das nicht hilfreich",
    unanswered: "Keine Antwort",
    cancelled: "Nicht gesendet: jemand anderes antwortet",
    failed: (reason: string | null) => (reason === null ? "Nicht zugestellt" : `Nicht zugestellt: ${reason}`)
  }
)

const FeedbackNote = ({ feedback }: { readonly feedback: Feedback }) => {
  const t = useText(words)
  const { moment } = useFormat()
  const { at, comment, rating } = feedback
  return (
    <div className={rating === 1 ? css["helpful"] : css["unhelpful"]}>
      <span>
        {rating === 1 ? t.helpful : t.unhelpful} <time dateTime={at}>{moment(at)}</time>
      </span>
      {comment === null ? null : <q>{comment}</q>}
    </div>
  )
}

const kilobytesOf = (size: number) => Math.max(1, Math.round(size / 1_000))

interface MessageItemProps {
  readonly conversationId: string
  /** Names of the customer and the agent. */
  readonly names: { readonly customer: string; readonly agent: string }
  readonly message: Message
  /** Content beside the time. */
  readonly aside: ReactNode
}

export const MessageItem = ({ conversationId, message, names, aside }: MessageItemProps) => {
  const t = useText(words)
  const { ago, moment, number } = useFormat()
  const failureText = useFailure()
  const { attachments, author, by, citations, content, createdAt, delivery, failure, feedback, role } =
    message
  const isAgent = role === "assistant" && (author === "agent" || author === null)
  const sender = role === "user" ? "customer" : (author ?? "agent")
  const name =
    sender === "customer"
      ? names.customer
      : sender === "agent"
        ? names.agent
        : sender === "human"
          ? (by?.email ?? null)
          : null
  return (
    <article
      className={`${css["said"]} ${css[sender]}`}
      aria-label={name === null ? t[sender] : `${t[sender]}: ${name}`}
    >
      <header className={css["head"]}>
        <strong dir="auto">{name ?? t[sender]}</strong>
        {name === null || sender === "customer" ? null : <span className={css["role"]}>{t[sender]}</span>}
        <time dateTime={createdAt} title={moment(createdAt)}>
          {ago(createdAt)}
        </time>
        {aside}
      </header>
      {role === "user" ? (
        // A customer's text is not interpreted as Markdown.
        <p className={css["plain"]} dir="auto">
          {content}
        </p>
      ) : (
        <Prose
          text={content}
          {...(isAgent
            ? {
                citation: (index: number) => {
                  const citation = citations.find((one) => one.index === index)
                  return citation === undefined ? null : <CitationChip citation={citation} />
                }
              }
            : {})}
        />
      )}
      {/* On screen, a press on its number shows a source. */}
      {citations.length === 0 ? null : (
        <ol className={css["sources"]} lang="">
          {citations.map(({ index, title, url }) => (
            <li key={index} value={index}>
              {[headingPath(title), url].filter(Boolean).join(", ")}
            </li>
          ))}
        </ol>
      )}
      {failure === null ? null : (
        <p className={css["undelivered"]}>
          <strong>{t.unanswered}</strong> {failureText(failure)}
        </p>
      )}
      {feedback === null ? null : <FeedbackNote feedback={feedback} />}
      {attachments.length === 0 ? null : (
        <ul className={css["files"]} aria-label={t.files}>
          {attachments.map(({ artifact, name, size }) => (
            <li key={artifact}>
              <a href={attachmentAddress(conversationId, artifact)} download={name}>
                {name}
              </a>{" "}
              <span className={css["soft"]}>{`${number(kilobytesOf(size))} kB`}</span>
            </li>
          ))}
        </ul>
      )}
      {delivery === null ? null : delivery.status === "failed" ? (
        <p className={css["undelivered"]}>{t.failed(delivery.reason)}</p>
      ) : (
        <p className={css["soft"]}>{t[delivery.status]}</p>
      )}
    </article>
  )
}
