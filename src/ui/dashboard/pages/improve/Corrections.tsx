/** Corrections of an agent, with their state. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { Link } from "wouter"
import { type Correction, corrections } from "../../api/improve/Corrections.ts"
import { Badge } from "../../components/Badge.tsx"
import { Listing } from "../../components/Listing.tsx"
import { Empty } from "../../components/Page.tsx"
import { RowButton } from "../../components/RowActions.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { CorrectionEditor } from "./CorrectionEditor.tsx"
import css from "./Improve.module.css"

const words = texts(
  {
    title: "Corrections",
    empty: "No correction yet",
    emptyLead:
      "A correction is the right answer to something that went wrong. Nobody is given it before it is approved.",
    toWrong: "See what went wrong",
    question: "Question",
    state: "State",
    effect: "Would change",
    when: "Written",
    open: "Open",
    approved: "Approved",
    unwritten: "Without an answer",
    unseen: "Draft",
    replaying: "Preview under way",
    seen: "Ready to approve",
    of: (changed: string, turns: string) => `${changed} of ${turns}`
  },
  {
    title: "Korrekturen",
    empty: "Noch keine Korrektur",
    emptyLead:
      "Eine Korrektur ist die richtige Antwort auf etwas, das schiefging. Niemand bekommt sie, bevor sie freigegeben ist.",
    toWrong: "Ansehen, was schiefging",
    question: "Frage",
    state: "Stand",
    effect: "Würde ändern",
    when: "Geschrieben",
    open: "Öffnen",
    approved: "Freigegeben",
    unwritten: "Ohne Antwort",
    unseen: "Entwurf",
    replaying: "Vorschau läuft",
    seen: "Bereit zur Freigabe",
    of: (changed: string, turns: string) => `${changed} von ${turns}`
  }
)

const State = ({ correction: { answer, preview, status } }: { readonly correction: Correction }) => {
  const t = useText(words)
  if (status === "approved") return <Badge tone="good">{t.approved}</Badge>
  if (answer === "") return <Badge tone="warn">{t.unwritten}</Badge>
  if (preview === null) return <Badge tone="neutral">{t.unseen}</Badge>
  return <Badge tone="accent">{preview.isComplete ? t.seen : t.replaying}</Badge>
}

interface Props {
  readonly agentId: string
  readonly mayChange: boolean
  /** The one that is open; null for the list. */
  readonly shownId: string | null
  readonly onShow: (id: string | null) => void
}

export const Corrections = ({ agentId, mayChange, onShow, shownId }: Props) => {
  const t = useText(words)
  const { ago, number } = useFormat()
  const query = useInfiniteQuery(corrections(agentId))
  if (shownId !== null)
    return (
      <CorrectionEditor
        // Another correction is another form.
        key={shownId}
        agentId={agentId}
        id={shownId}
        mayChange={mayChange}
        onClose={() => onShow(null)}
      />
    )
  return (
    <Listing
      query={query}
      rowsOf={(page) => page.corrections}
      label={t.title}
      keyOf={({ id }) => id}
      empty={
        <Empty
          title={t.empty}
          lead={t.emptyLead}
          action={<Link href={`/agents/${agentId}/improve`}>{t.toWrong}</Link>}
        />
      }
      columns={[
        {
          title: t.question,
          cell: ({ question }) => (
            <strong lang="" className={css["said"]}>
              {question}
            </strong>
          )
        },
        { title: t.state, noWrap: true, cell: (correction) => <State correction={correction} /> },
        {
          title: t.effect,
          alignEnd: true,
          cell: ({ preview }) =>
            preview === null ? "–" : t.of(number(preview.changed), number(preview.asked))
        },
        { title: t.when, noWrap: true, cell: ({ createdAt }) => ago(createdAt) }
      ]}
      actions={({ id, question }) => <RowButton label={t.open} of={question} onClick={() => onShow(id)} />}
    />
  )
}
