/** One message: author, time, sources and files. */
import type { ReactNode } from "react"
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

const Opinion = ({ feedback }: { readonly feedback: Feedback }) => {
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

const kilobytes = (size: number) => Math.max(1, Math.round(size / 1_000))

interface SaidProps {
  readonly conversationId: string
  /** Names of the customer and the agent. */
  readonly names: { readonly customer: string; readonly agent: string }
  readonly message: Message
  /** Content beside the time. */
  readonly aside: ReactNode
}

export const Said = ({ conversationId, message, names, aside }: SaidProps) => {
  const t = useText(words)
  const { ago, moment, number } = useFormat()
  const why = useFailure()
  const { attachments, author, by, citations, content, createdAt, delivery, failure, feedback, role } =
    message
  const isAgent = role === "assistant" && (author === "agent" || author === null)
  const writer = role === "user" ? "customer" : (author ?? "agent")
  const name =
    writer === "customer"
      ? names.customer
      : writer === "agent"
        ? names.agent
        : writer === "human"
          ? (by?.email ?? null)
          : null
  return (
    <article
      className={`${css["said"]} ${css[writer]}`}
      aria-label={name === null ? t[writer] : `${t[writer]}: ${name}`}
    >
      <header className={css["head"]}>
        <strong>{name ?? t[writer]}</strong>
        {name === null || writer === "customer" ? null : <span className={css["role"]}>{t[writer]}</span>}
        <time dateTime={createdAt} title={moment(createdAt)}>
          {ago(createdAt)}
        </time>
        {aside}
      </header>
      {role === "user" ? (
        // A customer's text is not interpreted as Markdown.
        <p className={css["plain"]}>{content}</p>
      ) : (
        <Prose
          text={content}
          {...(isAgent
            ? {
                citation: (index: number) => {
                  const found = citations.find((one) => one.index === index)
                  return found === undefined ? null : <CitationChip citation={found} />
                }
              }
            : {})}
        />
      )}
      {failure === null ? null : (
        <p className={css["undelivered"]}>
          <strong>{t.unanswered}</strong> {why(failure)}
        </p>
      )}
      {feedback === null ? null : <Opinion feedback={feedback} />}
      {attachments.length === 0 ? null : (
        <ul className={css["files"]} aria-label={t.files}>
          {attachments.map(({ artifact, name, size }) => (
            <li key={artifact}>
              <a href={attachmentAddress(conversationId, artifact)} download={name}>
                {name}
              </a>{" "}
              <span className={css["soft"]}>{`${number(kilobytes(size))} kB`}</span>
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
