/** Open sessions: the user's own, and for owners those of a member. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query"
import { isUnknownId } from "../../api/Client.ts"
import { endOtherSessions, endSession, type OpenSession, openSessions } from "../../api/Sessions.ts"
import { members } from "../../api/Team.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Loaded, Page } from "../../components/Page.tsx"
import { RowActions } from "../../components/RowActions.tsx"
import { Table } from "../../components/Table.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { passkeys } from "../../api/Passkeys.ts"
import { NotFound } from "../NotFound.tsx"
import { Passkeys } from "./Passkeys.tsx"

const words = texts(
  {
    title: "Sessions",
    own: "Where you are signed in. What you end here is signed out at once.",
    theirs: (email: string) => `Where ${email} is signed in. What you end here is signed out at once.`,
    device: "Device",
    address: "Address",
    method: "Signed in with",
    password: "Password",
    sso: "Single sign-on",
    passkey: "Passkey",
    used: "Last use",
    current: "This one",
    unknown: "Unknown",
    on: (browser: string, system: string) => `${browser} on ${system}`,
    end: "End",
    ending: "End the session",
    question: "That browser has to sign in again.",
    endAll: "End all others",
    endEach: "End all",
    all: "Every other browser has to sign in again.",
    none: "Nowhere."
  },
  {
    title: "Sitzungen",
    own: "Wo Sie angemeldet sind. Was Sie hier beenden, ist sofort abgemeldet.",
    theirs: (email: string) => `Wo ${email} angemeldet ist. Was Sie hier beenden, ist sofort abgemeldet.`,
    device: "Gerät",
    address: "Adresse",
    method: "Angemeldet mit",
    password: "Passwort",
    sso: "Single Sign-on",
    passkey: "Passkey",
    used: "Zuletzt benutzt",
    current: "Diese",
    unknown: "Unbekannt",
    on: (browser: string, system: string) => `${browser} unter ${system}`,
    end: "Beenden",
    ending: "Sitzung beenden",
    question: "Dieser Browser muss sich neu anmelden.",
    endAll: "Alle anderen beenden",
    endEach: "Alle beenden",
    all: "Jeder andere Browser muss sich neu anmelden.",
    none: "Nirgends."
  }
)

const firstMatch = (text: string, names: ReadonlyArray<readonly [RegExp, string]>) =>
  names.find(([pattern]) => pattern.test(text))?.[1]

/** User agents name several browsers, so the first match in this order counts. */
const browsers: ReadonlyArray<readonly [RegExp, string]> = [
  [/Edg/, "Edge"],
  [/OPR/, "Opera"],
  [/Firefox/, "Firefox"],
  [/Chrom/, "Chrome"],
  [/Safari/, "Safari"]
]
const systems: ReadonlyArray<readonly [RegExp, string]> = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS/, "macOS"],
  [/Linux/, "Linux"]
]

const Device = ({ current, device }: OpenSession) => {
  const t = useText(words)
  const browser = firstMatch(device ?? "", browsers)
  const system = firstMatch(device ?? "", systems)
  const name = browser === undefined || system === undefined ? (device ?? t.unknown) : t.on(browser, system)
  return (
    <span title={device ?? undefined}>
      <strong>{name}</strong> {current ? <Badge tone="neutral">{t.current}</Badge> : null}
    </span>
  )
}

const Sessions = ({ userId }: { readonly userId: string | null }) => {
  const t = useText(words)
  const { ago } = useFormat()
  const queries = useQueryClient()
  const options = openSessions(userId)
  const query = useQuery(options)
  // Requested together with the sessions, although it is shown after them.
  useQuery({ ...passkeys, enabled: userId === null })
  const team = useAllPages(useInfiniteQuery({ ...members, enabled: userId !== null }), (page) => page.users)
  const member = team?.find(({ id }) => id === userId)
  const refresh = () => queries.invalidateQueries({ queryKey: options.queryKey })
  if (userId !== null && isUnknownId(query.error)) return <NotFound what="member" back="/team" />
  const hasOthers = (query.data ?? []).some(({ current }) => !current)
  return (
    <Page
      title={t.title}
      lead={userId === null ? t.own : t.theirs(member?.email ?? "…")}
      actions={
        hasOthers ? (
          <ConfirmButton
            trigger={<Button>{userId === null ? t.endAll : t.endEach}</Button>}
            title={userId === null ? t.endAll : t.endEach}
            question={t.all}
            action={t.end}
            onConfirm={async () => {
              await endOtherSessions(userId)
              await refresh()
            }}
          />
        ) : null
      }
    >
      <Loaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <p>{t.none}</p>
          ) : (
            <Table
              label={t.title}
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                { title: t.device, cell: (row) => <Device {...row} /> },
                { title: t.address, untitledOnPhone: true, cell: ({ address }) => address ?? t.unknown },
                { title: t.method, untitledOnPhone: true, cell: ({ method }) => t[method] },
                { title: t.used, noWrap: true, untitledOnPhone: true, cell: ({ usedAt }) => ago(usedAt) }
              ]}
              actions={({ address, current, id, usedAt }) =>
                current ? null : (
                  <RowActions
                    of={`${address ?? t.unknown}, ${ago(usedAt)}`}
                    actions={[
                      {
                        label: t.end,
                        does: {
                          title: t.ending,
                          question: t.question,
                          action: t.end,
                          onConfirm: () => endSession(userId, id).then(refresh)
                        }
                      }
                    ]}
                  />
                )
              }
            />
          )
        }
      </Loaded>
      {/* Shown after the sessions have loaded, so that it does not move. */}
      {userId === null && !query.isPending ? <Passkeys /> : null}
    </Page>
  )
}

export default Sessions
