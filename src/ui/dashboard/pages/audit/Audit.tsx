/** Who did what, newest first. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { audit } from "../../api/Audit.ts"
import { Button } from "../../components/Button.tsx"
import { Loaded, Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Audit.module.css"

const words = texts(
  {
    title: "Audit",
    lead: "Every change by the team, the operator and keys, and every reading of a trace or of personal data.",
    empty: "Nothing has been recorded yet.",
    when: "When",
    who: "Who",
    what: "What",
    target: "On what",
    request: "Request",
    key: "Key",
    user: "User",
    operator: "Operator"
  },
  {
    title: "Protokoll",
    lead: "Jede Änderung durch Team, Betreiber und Schlüssel und jeder Blick in Abläufe oder persönliche Daten.",
    empty: "Noch nichts aufgezeichnet.",
    when: "Wann",
    who: "Wer",
    what: "Was",
    target: "Woran",
    request: "Anfrage",
    key: "Schlüssel",
    user: "Benutzer",
    operator: "Betreiber"
  }
)

const Audit = () => {
  const t = useText(words)
  const common = useText(everywhere)
  const { moment } = useFormat()
  const query = useInfiniteQuery(audit)
  return (
    <Page title={t.title} lead={t.lead}>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.entries)
          return rows.length === 0 ? (
            <p>{t.empty}</p>
          ) : (
            <Table
              label={t.title}
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                { title: t.when, cell: ({ at }) => moment(at) },
                { title: t.what, cell: ({ action }) => <code>{action}</code> },
                {
                  title: t.who,
                  cell: ({ actor }) => (
                    <span className={css["id"]}>
                      {t[actor.type]} <code>{actor.id}</code>
                    </span>
                  )
                },
                { title: t.target, cell: ({ target }) => <code className={css["id"]}>{target}</code> },
                {
                  title: t.request,
                  end: true,
                  cell: ({ requestId }) => <code className={css["id"]}>{requestId}</code>
                }
              ]}
            />
          )
        }}
      </Loaded>
      {query.hasNextPage ? (
        <Button onPress={() => void query.fetchNextPage()}>{common.loadMore}</Button>
      ) : null}
    </Page>
  )
}

export default Audit
