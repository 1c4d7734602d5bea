/** One message: who wrote it, when, from what, and with which files. */
import type { ReactNode } from "react"
import { Button as AriaButton, Dialog, DialogTrigger, Popover } from "react-aria-components"
import type { Citation, Message } from "../../api/Conversations.ts"
import { Prose } from "../../components/Prose.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Said.module.css"

const words = texts(
  {
    customer: "Customer",
    agent: "Agent",
    human: "Team",
    system: "Automatic",
    citation: (index: number) => `Citation ${index}`,
    sources: "Sources",
    files: "Files",
    open: "Open the source"
  },
  {
    customer: "Kunde",
    agent: "Agent",
    human: "Team",
    system: "Automatisch",
    citation: (index: number) => `Beleg ${index}`,
    sources: "Quellen",
    files: "Dateien",
    open: "Quelle öffnen"
  }
)

const Source = ({ citation }: { readonly citation: Citation }) => {
  const t = useText(words)
  return (
    <DialogTrigger>
      <AriaButton className={css["citation"] ?? ""} aria-label={t.citation(citation.index)}>
        {citation.index}
      </AriaButton>
      <Popover className={css["popover"] ?? ""}>
        <Dialog className={css["source"] ?? ""} aria-label={t.citation(citation.index)}>
          <strong>{citation.title}</strong>
          <span className={css["soft"]}>{citation.sourceName}</span>
          <p>{citation.text}</p>
          {/^https?:/.test(citation.url) ? (
            <a href={citation.url} target="_blank" rel="noopener noreferrer nofollow">
              {`${t.open}: ${citation.url}`}
            </a>
          ) : null}
        </Dialog>
      </Popover>
    </DialogTrigger>
  )
}

const kilobytes = (size: number) => Math.max(1, Math.round(size / 1_000))

interface SaidProps {
  readonly message: Message
  /** What stands beside the time. */
  readonly aside: ReactNode
}

export const Said = ({ message, aside }: SaidProps) => {
  const t = useText(words)
  const { moment, number } = useFormat()
  const { attachments, author, citations, content, createdAt, role } = message
  const writer = role === "user" ? "customer" : (author ?? "agent")
  return (
    <article className={`${css["said"]} ${css[writer]}`} aria-label={t[writer]}>
      <header className={css["head"]}>
        <strong>{t[writer]}</strong>
        <time dateTime={createdAt}>{moment(createdAt)}</time>
        {aside}
      </header>
      {role === "user" ? (
        // What a customer typed means nothing but itself.
        <p className={css["plain"]}>{content}</p>
      ) : (
        <Prose
          text={content}
          citation={(index) => {
            const found = citations.find((one) => one.index === index)
            return found === undefined ? undefined : <Source citation={found} />
          }}
        />
      )}
      {attachments.length === 0 ? null : (
        <ul className={css["files"]} aria-label={t.files}>
          {attachments.map(({ artifact, name, size }) => (
            <li key={artifact}>
              {name} <span className={css["soft"]}>{`${number(kilobytes(size))} kB`}</span>
            </li>
          ))}
        </ul>
      )}
    </article>
  )
}
