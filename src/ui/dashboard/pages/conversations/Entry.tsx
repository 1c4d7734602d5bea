/** Entries of a thread other than messages: events, and notes of the team. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { memo } from "react"
import { type Entry as ThreadEntry, refetchThread, removeNote, type Teammate } from "../../api/Inbox.ts"
import { Button } from "../../components/Button.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useHandoffReason, words as shared } from "./words.ts"
import css from "./Entry.module.css"

const words = texts(
  {
    note: "Private note",
    noteOf: (who: string) => `Private note by ${who}`,
    requested: "A human was asked for",
    requestedFor: (reason: string) => `A human was asked for: ${reason}`,
    taken: (who: string) => `${who} took over`,
    takenElsewhere: "A human took over outside Spoke",
    released: (who: string) => `${who} gave the conversation back to the agent`,
    closed: (who: string) => `${who} closed the conversation`,
    assigned: (who: string, to: string) => `${who} assigned the conversation to ${to}`,
    taking: (who: string) => `${who} took on the conversation`,
    unassigned: (who: string) => `${who} removed the assignment`,
    labelled: (who: string, label: string) => `${who} added the label ${label}`,
    unlabelled: (who: string, label: string) => `${who} removed the label ${label}`,
    service: "Spoke"
  },
  {
    note: "Interne Notiz",
    noteOf: (who: string) => `Interne Notiz von ${who}`,
    requested: "Ein Mensch wurde gewünscht",
    requestedFor: (reason: string) => `Ein Mensch wurde gewünscht: ${reason}`,
    taken: (who: string) => `${who} hat übernommen`,
    takenElsewhere: "Ein Mensch hat außerhalb von Spoke übernommen",
    released: (who: string) => `${who} hat das Gespräch dem Agenten zurückgegeben`,
    closed: (who: string) => `${who} hat das Gespräch geschlossen`,
    assigned: (who: string, to: string) => `${who} hat das Gespräch ${to} zugewiesen`,
    taking: (who: string) => `${who} hat sich das Gespräch zugewiesen`,
    unassigned: (who: string) => `${who} hat die Zuweisung aufgehoben`,
    labelled: (who: string, label: string) => `${who} hat das Label ${label} hinzugefügt`,
    unlabelled: (who: string, label: string) => `${who} hat das Label ${label} entfernt`,
    service: "Spoke"
  }
)

const useEntryText = () => {
  const t = useText(words)
  const names = useText(shared)
  const reasonOf = useHandoffReason()
  const nameOf = (member: Teammate | null) => (member === null ? t.service : (member.email ?? names.former))
  const textOf = ({ by, content, kind, subject }: ThreadEntry): string => {
    const author = nameOf(by)
    switch (kind) {
      case "requested":
        return content === null ? t.requested : t.requestedFor(reasonOf(content) ?? content)
      case "taken":
        return by === null ? t.takenElsewhere : t.taken(author)
      case "assigned":
        return subject !== null && by?.id === subject.id
          ? t.taking(author)
          : t.assigned(author, nameOf(subject))
      case "labelled":
      case "unlabelled":
        return t[kind](author, content ?? "")
      case "note":
        return t.noteOf(author)
      default:
        return t[kind](author)
    }
  }
  return { nameOf, textOf }
}

interface Props {
  readonly conversationId: string
  readonly entry: ThreadEntry
  readonly userId: string
}

export const Entry = memo(({ conversationId, entry, userId }: Props) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { ago, moment } = useFormat()
  const { nameOf, textOf } = useEntryText()
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => removeNote(conversationId, entry.id),
    onSettled: () => refetchThread(queries, conversationId)
  })
  const time = (
    <time dateTime={entry.createdAt} title={moment(entry.createdAt)}>
      {ago(entry.createdAt)}
    </time>
  )
  return entry.kind === "note" ? (
    <article className={css["note"]} aria-label={textOf(entry)}>
      <header className={css["head"]}>
        <strong>{nameOf(entry.by)}</strong>
        <span>{t.note}</span>
        {time}
        {entry.by?.id === userId ? (
          <Button kind="quiet" busy={remove.isPending} onClick={() => remove.mutate()}>
            {common.delete}
          </Button>
        ) : null}
      </header>
      <p className={css["plain"]}>{entry.content}</p>
    </article>
  ) : (
    <p className={css["event"]}>
      <span>{textOf(entry)}</span> {time}
    </p>
  )
})
