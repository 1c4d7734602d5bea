/** Use and size of each source in a month. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { Link } from "wouter"
import { sourceValues } from "../../api/improve/Findings.ts"
import { CsvDownload } from "../../components/charts/CsvDownload.tsx"
import { Select } from "../../components/Field.tsx"
import { Empty, Loaded } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Improve.module.css"
import { monthsUntil } from "./months.ts"

const words = texts(
  {
    title: "Value of sources",
    lead: "How often replies rested on each source in the month, and what it takes. Documents and storage are those of today.",
    month: "Month",
    source: "Source",
    shown: "Shown",
    cited: "Cited",
    helpful: "Helpful",
    notHelpful: "Not helpful",
    tokens: "Tokens, about",
    documents: "Documents",
    storage: "Storage",
    storageBytes: "Storage in bytes",
    empty: "No source yet",
    emptyLead: "Add a source, and what it does for the answers is counted here.",
    toSources: "Add a source"
  },
  {
    title: "Wert der Quellen",
    lead: "Wie oft Antworten in dem Monat auf jeder Quelle beruhten, und was sie braucht. Dokumente und Speicher sind die von heute.",
    month: "Monat",
    source: "Quelle",
    shown: "Gezeigt",
    cited: "Zitiert",
    helpful: "Hilfreich",
    notHelpful: "Nicht hilfreich",
    tokens: "Tokens, etwa",
    documents: "Dokumente",
    storage: "Speicher",
    storageBytes: "Speicher in Bytes",
    empty: "Noch keine Quelle",
    emptyLead: "Sobald es eine Quelle gibt, wird hier gezählt, was sie zu den Antworten beiträgt.",
    toSources: "Quelle hinzufügen"
  }
)

/** Number of months to choose from. */
const monthCount = 24

export const SourceValues = ({ agentId }: { readonly agentId: string }) => {
  const t = useText(words)
  const { bytes, month: monthName, number } = useFormat()
  const months = monthsUntil(new Date(), monthCount)
  const [month, setMonth] = useState(months[0] ?? "")
  // The previous month stays visible while another one is loaded.
  const query = useQuery({ ...sourceValues(agentId, month), placeholderData: keepPreviousData })
  return (
    <Loaded query={query}>
      {(sources) => {
        if (sources.length === 0)
          return (
            <Empty
              title={t.empty}
              lead={t.emptyLead}
              action={<Link href={`/agents/${agentId}/sources`}>{t.toSources}</Link>}
            />
          )
        const rows = sources.toSorted((one, other) => other.cited - one.cited || other.shown - one.shown)
        return (
          <>
            <h2 className="visually-hidden">{t.title}</h2>
            <p className={css["lead"]}>{t.lead}</p>
            <div className={css["bar"]}>
              <Select
                label={t.month}
                value={month}
                onChange={setMonth}
                options={months.map((each) => [each, monthName(each)] as const)}
              />
              <CsvDownload
                title={t.title}
                name={`sources-${month}`}
                header={[
                  t.source,
                  t.shown,
                  t.cited,
                  t.helpful,
                  t.notHelpful,
                  t.tokens,
                  t.documents,
                  t.storageBytes
                ]}
                rows={rows.map((row) => [
                  row.name,
                  row.shown,
                  row.cited,
                  row.helpful,
                  row.notHelpful,
                  row.tokens,
                  row.documents,
                  row.storedBytes
                ])}
              />
            </div>
            <Table
              label={t.title}
              rows={rows}
              keyOf={({ sourceId }) => sourceId}
              columns={[
                {
                  title: t.source,
                  cell: ({ name, sourceId }) => (
                    <Link href={`/sources/${sourceId}`} lang="">
                      {name}
                    </Link>
                  )
                },
                { title: t.shown, alignEnd: true, cell: ({ shown }) => number(shown) },
                { title: t.cited, alignEnd: true, cell: ({ cited }) => number(cited) },
                { title: t.helpful, alignEnd: true, cell: ({ helpful }) => number(helpful) },
                { title: t.notHelpful, alignEnd: true, cell: ({ notHelpful }) => number(notHelpful) },
                { title: t.tokens, alignEnd: true, cell: ({ tokens }) => number(tokens) },
                { title: t.documents, alignEnd: true, cell: ({ documents }) => number(documents) },
                {
                  title: t.storage,
                  alignEnd: true,
                  noWrap: true,
                  cell: ({ storedBytes }) => bytes(storedBytes)
                }
              ]}
            />
          </>
        )
      }}
    </Loaded>
  )
}
