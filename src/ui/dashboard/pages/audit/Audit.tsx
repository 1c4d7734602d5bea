/** The audit trail, newest first. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { audit, type AuditEntry } from "../../api/Audit.ts"
import { Empty, Page } from "../../components/Page.tsx"
import { Cell } from "../../components/RowActions.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useLanguage, useText } from "../../text/Language.tsx"
import css from "./Audit.module.css"
import { actionName } from "./actions.ts"
import { Listing } from "../../components/Listing.tsx"

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

/** An id on one line, truncated if necessary. Copying yields the whole id. */
const Id = ({ id }: { readonly id: string }) => (
  <code className={css["id"]} title={id}>
    {id}
  </code>
)

/** The name of a person or a thing; its id if it has no name or was deleted. */
const NameOrId = ({ id, name }: { readonly id: string; readonly name: string | null }) =>
  name === null ? (
    <Id id={id} />
  ) : (
    <span className={css["name"]} title={id}>
      {name}
    </span>
  )

const Actor = ({ actor, actorName }: AuditEntry) => {
  const t = useText(words)
  if (actorName !== null) return <NameOrId id={actor.id} name={actorName} />
  return <Cell notes={[<Id key="id" id={actor.id} />]}>{t[actor.type]}</Cell>
}

const Audit = () => {
  const t = useText(words)
  const { language } = useLanguage()
  const { moment } = useFormat()
  const query = useInfiniteQuery(audit)
  return (
    <Page title={t.title} lead={t.lead} guide="privacy#audit-trail">
      <Listing
        query={query}
        rowsOf={(page) => page.entries}
        empty={<Empty title={t.title} lead={t.empty} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: t.what,
            cell: ({ action }) => <strong title={action}>{actionName(action, language)}</strong>
          },
          {
            title: t.target,
            cell: ({ target, targetName }) => <NameOrId id={target} name={targetName} />
          },
          { title: t.who, cell: (entry) => <Actor {...entry} /> },
          { title: t.when, noWrap: true, cell: ({ at }) => moment(at) },
          { title: t.request, alignEnd: true, cell: ({ requestId }) => <Id id={requestId} /> }
        ]}
      />
    </Page>
  )
}

export default Audit
