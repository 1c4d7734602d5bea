/** Problems that keep an agent from answering well, shown before the first question. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { Link } from "wouter"
import { hasActiveJob, isNeverRead, sources } from "../../api/Sources.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Chat.module.css"

const words = texts(
  {
    none: "This agent knows nothing yet. Give it a website or a document, and it answers from that, with citations.",
    add: "Add a source",
    reading: "A source is being read. What is in it is found as soon as it is ready.",
    untouched: "None of its sources has been read yet.",
    toSources: "To the sources",
    failed: "None of its sources could be read.",
    look: "See why"
  },
  {
    none: "Dieser Agent weiß noch nichts. Geben Sie ihm eine Website oder ein Dokument, und er antwortet daraus, mit Belegen.",
    add: "Quelle hinzufügen",
    reading: "Eine Quelle wird gerade gelesen. Was darin steht, wird gefunden, sobald sie bereit ist.",
    untouched: "Noch keine seiner Quellen wurde gelesen.",
    toSources: "Zu den Quellen",
    failed: "Keine seiner Quellen ließ sich lesen.",
    look: "Warum?"
  }
)

interface Props {
  readonly agentId: string
  readonly mayChange: boolean
}

export const Advice = ({ agentId, mayChange }: Props) => {
  const t = useText(words)
  const { data, hasNextPage } = useInfiniteQuery(sources(agentId))
  const allSources = data?.pages.flatMap((page) => page.sources)
  if (allSources === undefined) return null
  const sourcesPath = `/agents/${agentId}/sources`
  if (allSources.length === 0) {
    return (
      <p className={css["advice"]}>
        {t.none} {mayChange ? <Link href={sourcesPath}>{t.add}</Link> : null}
      </p>
    )
  }
  if (allSources.some(hasActiveJob)) {
    return (
      <p className={css["advice"]} role="status">
        {t.reading}
      </p>
    )
  }
  // Whether all sources failed is known only after the last page is loaded.
  if (hasNextPage) return null
  if (allSources.every(isNeverRead)) {
    return (
      <p className={css["advice"]}>
        {t.untouched} <Link href={sourcesPath}>{t.toSources}</Link>
      </p>
    )
  }
  return allSources.every(({ status }) => status === "FAILED") ? (
    <p className={css["advice"]}>
      {t.failed} <Link href={sourcesPath}>{t.look}</Link>
    </p>
  ) : null
}
