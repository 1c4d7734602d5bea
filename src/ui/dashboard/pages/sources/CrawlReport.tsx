/** The outcome of every address that the source's job found. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { useState } from "react"
import { crawl, type Outcome, outcomes, type SourceDetail } from "../../api/Sources.ts"
import { Badge } from "../../components/Badge.tsx"
import { Select } from "../../components/Field.tsx"
import { Section } from "../../components/Page.tsx"
import { Cell } from "../../components/RowActions.tsx"
import { texts, useText } from "../../text/Language.tsx"
import css from "./CrawlReport.module.css"
import { ReadingReason } from "./ReadingError.tsx"
import { outcomeTones } from "./words.ts"
import { Listing } from "../../components/Listing.tsx"

const words = texts(
  {
    title: "What was read",
    show: "Show",
    all: "Everything",
    indexed: "Read",
    unchanged: "Unchanged",
    skipped: "Left out",
    failed: "Failed",
    redirected: "Redirected",
    address: "Address",
    outcome: "Outcome",
    why: "Why",
    depth: "Depth",
    from: (parent: string) => `found at ${parent}`,
    nothing: "Nothing of this kind."
  },
  {
    title: "Was gelesen wurde",
    show: "Zeigen",
    all: "Alles",
    indexed: "Gelesen",
    unchanged: "Unverändert",
    skipped: "Ausgelassen",
    failed: "Fehlgeschlagen",
    redirected: "Weitergeleitet",
    address: "Adresse",
    outcome: "Ergebnis",
    why: "Warum",
    depth: "Tiefe",
    from: (parent: string) => `gefunden auf ${parent}`,
    nothing: "Nichts von dieser Art."
  }
)

export const CrawlReport = ({ source }: { readonly source: SourceDetail }) => {
  const t = useText(words)
  const [outcome, setOutcome] = useState<Outcome | "all">("all")
  const query = useInfiniteQuery(
    crawl(source.id, outcome, `${source.latestJob?.id} ${source.latestJob?.status}`)
  )
  const options: ReadonlyArray<readonly [Outcome | "all", string]> = [
    ["all", t.all],
    ...outcomes.map((one) => [one, t[one]] as const)
  ]
  return (
    <Section
      title={t.title}
      actions={<Select compact label={t.show} options={options} value={outcome} onChange={setOutcome} />}
    >
      <Listing
        query={query}
        rowsOf={(page) => page.entries}
        empty={<p className={css["soft"]}>{t.nothing}</p>}
        label={t.title}
        keyOf={({ url, parent }) => `${url} ${parent}`}
        columns={[
          {
            title: t.address,
            cell: ({ url, parent }) => <Cell notes={[parent === null ? null : t.from(parent)]}>{url}</Cell>
          },
          {
            title: t.outcome,
            cell: (entry) => <Badge tone={outcomeTones[entry.outcome]}>{t[entry.outcome]}</Badge>
          },
          {
            title: t.why,
            cell: ({ httpStatus, message, reason }) =>
              message === null ? (
                httpStatus === null ? (
                  ""
                ) : (
                  `HTTP ${httpStatus}`
                )
              ) : (
                <ReadingReason code={reason} message={message} />
              )
          },
          { title: t.depth, alignEnd: true, cell: ({ depth }) => String(depth) }
        ]}
      />
    </Section>
  )
}
