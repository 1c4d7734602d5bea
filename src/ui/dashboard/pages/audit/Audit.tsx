/** The audit trail, newest first. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { audit, type AuditEntry } from "../../api/Audit.ts"
import { members } from "../../api/Team.ts"
import { Button } from "../../components/Button.tsx"
import { Loaded, Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useLanguage, useText } from "../../text/Language.tsx"
import css from "./Audit.module.css"
import { actionOf } from "./actions.ts"

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
    token: "Access token",
    operator: "Operator",
    service: "Spoke"
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
    token: "Zugangstoken",
    operator: "Betreiber",
    service: "Spoke"
  }
)

/** On one line, truncated if necessary. Copying yields the whole text. */
const Id = ({ id }: { readonly id: string }) => (
  <code className={css["id"]} title={id}>
    {id}
  </code>
)

const Who = ({ actor }: Pick<AuditEntry, "actor">) => {
  const t = useText(words)
  const { data } = useInfiniteQuery(members)
  const email = data?.pages.flatMap((page) => page.users).find(({ id }) => id === actor.id)?.email
  return (
    <span className={css["two"]}>
      {email ?? t[actor.type]}
      {email === undefined ? <Id id={actor.id} /> : null}
    </span>
  )
}

const Audit = () => {
  const t = useText(words)
  const { language } = useLanguage()
  const common = useText(everywhere)
  const { moment } = useFormat()
  const query = useInfiniteQuery(audit)
  // With the names of the members, so that no row changes its height.
  const { isPending } = useInfiniteQuery(members)
  return (
    <Page title={t.title} lead={t.lead} guide="privacy#audit-trail">
      <Loaded query={isPending ? { ...query, data: undefined, isPending } : query}>
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
                { title: t.when, whole: true, cell: ({ at }) => moment(at) },
                {
                  title: t.what,
                  cell: ({ action }) => (
                    <span className={css["two"]}>
                      {actionOf(action, language)}
                      <code className={css["soft"]}>{action}</code>
                    </span>
                  )
                },
                { title: t.who, cell: ({ actor }) => <Who actor={actor} /> },
                { title: t.target, cell: ({ target }) => <Id id={target} /> },
                { title: t.request, end: true, cell: ({ requestId }) => <Id id={requestId} /> }
              ]}
            />
          )
        }}
      </Loaded>
      {query.hasNextPage && !isPending ? (
        <Button onPress={() => void query.fetchNextPage()}>{common.loadMore}</Button>
      ) : null}
    </Page>
  )
}

export default Audit
