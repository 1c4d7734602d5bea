/** Access tokens for programs that act for a person: create, revoke. A secret is shown once. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { membersOf } from "../../api/membersOf.ts"
import { createToken, type NewToken, revokeToken, type Token, tokens } from "../../api/Tokens.ts"
import { Badge, type Tone } from "../../components/Badge.tsx"
import { CheckboxGroup } from "../../components/Checkboxes.tsx"
import { TextField } from "../../components/Field.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../components/Listing.tsx"
import { useShowSecret } from "../../components/OneTimeSecret.tsx"
import { Empty, Page } from "../../components/Page.tsx"
import { Cell, RowActions } from "../../components/RowActions.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    title: "Access tokens",
    lead: "A token lets a program change things here as you, and never more than your role allows.",
    add: "New token",
    empty: "No token yet",
    emptyLead: "Programs use one with the management interface, spoke plan and spoke apply.",
    scopes: "What it may do",
    read: "Look at everything",
    readMeans: "Read what the dashboard shows.",
    agents: "Agents",
    agentsMeans: "Read and change agents, also from a file.",
    tools: "Tools",
    toolsMeans: "Read and change tools.",
    sources: "Sources",
    sourcesMeans: "Read and change sources.",
    channels: "Channels",
    channelsMeans: "Read and change channels.",
    keys: "Keys",
    keysMeans: "Make and revoke API keys.",
    team: "Team",
    teamMeans: "Invite, change and remove people.",
    all: "Everything",
    allMeans: "Whatever your role allows.",
    until: "Until",
    untilHelp: "Empty: until it is revoked.",
    secret: "The token",
    secretHelp: "Copy it now. It is not shown again.",
    by: "Made by",
    state: "State",
    used: "Last used",
    never: "Never",
    revoke: "Revoke",
    revocation: "Revoke the token",
    question: (name: string) => `Whatever uses “${name}” stops working at once, for good.`,
    ACTIVE: "Active",
    REVOKED: "Revoked",
    EXPIRED: "Expired"
  },
  {
    title: "Zugangstoken",
    lead: "Ein Token lässt ein Programm hier an Ihrer Stelle ändern, nie mehr als Ihre Rolle erlaubt.",
    add: "Neues Token",
    empty: "Noch kein Token",
    emptyLead: "Programme benutzen es mit der Verwaltungsschnittstelle, spoke plan und spoke apply.",
    scopes: "Was es darf",
    read: "Alles ansehen",
    readMeans: "Lesen, was die Übersicht zeigt.",
    agents: "Agenten",
    agentsMeans: "Agenten lesen und ändern, auch aus einer Datei.",
    tools: "Werkzeuge",
    toolsMeans: "Werkzeuge lesen und ändern.",
    sources: "Quellen",
    sourcesMeans: "Quellen lesen und ändern.",
    channels: "Kanäle",
    channelsMeans: "Kanäle lesen und ändern.",
    keys: "Schlüssel",
    keysMeans: "API-Schlüssel anlegen und widerrufen.",
    team: "Team",
    teamMeans: "Personen einladen, ändern und entfernen.",
    all: "Alles",
    allMeans: "Was Ihre Rolle erlaubt.",
    until: "Bis",
    untilHelp: "Leer: bis es widerrufen wird.",
    secret: "Das Token",
    secretHelp: "Jetzt kopieren. Es wird nicht wieder gezeigt.",
    by: "Angelegt von",
    state: "Stand",
    used: "Zuletzt benutzt",
    never: "Nie",
    revoke: "Widerrufen",
    revocation: "Token widerrufen",
    question: (name: string) => `Was „${name}“ benutzt, geht sofort nicht mehr, für immer.`,
    ACTIVE: "Aktiv",
    REVOKED: "Widerrufen",
    EXPIRED: "Abgelaufen"
  }
)

const tones: Record<Token["status"], Tone> = { ACTIVE: "good", REVOKED: "bad", EXPIRED: "warn" }

/** The scopes offered here. Others are available through the API. */
type OfferedScope = "*:read" | "agents:*" | "tools:*" | "sources:*" | "channels:*" | "keys:*" | "team:*" | "*"

/** The name and the description of each scope. */
const useScopeTexts = (): Record<OfferedScope, readonly [string, string]> => {
  const t = useText(words)
  return {
    "*:read": [t.read, t.readMeans],
    "agents:*": [t.agents, t.agentsMeans],
    "tools:*": [t.tools, t.toolsMeans],
    "sources:*": [t.sources, t.sourcesMeans],
    "channels:*": [t.channels, t.channelsMeans],
    "keys:*": [t.keys, t.keysMeans],
    "team:*": [t.team, t.teamMeans],
    "*": [t.all, t.allMeans]
  }
}

const defaultScopes = (): ReadonlyArray<OfferedScope> => ["agents:*"]
const emptyForm = { name: "", scopes: defaultScopes(), until: "" }
const fieldPaths = ["name", "scopes", "expiresAt"] as const

const CreateToken = ({ onClose }: { readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const scopeTexts = useScopeTexts()
  const showSecret = useShowSecret()
  const draft = useDraft({ name: "token", title: t.add, stored: emptyForm })
  const { change, value } = draft
  const create = useMutation({
    mutationFn: () => {
      const body: NewToken = {
        name: value.name,
        scopes: value.scopes,
        ...(value.until === "" ? {} : { expiresAt: new Date(value.until).toISOString() })
      }
      return createToken(body)
    },
    onSuccess: ({ secret }) => {
      draft.saved()
      onClose()
      showSecret({ title: t.add, label: t.secret, help: t.secretHelp, secret })
      // The secret is shown without waiting for the list.
      void queries.invalidateQueries({ queryKey: tokens.queryKey })
    }
  })
  const { errorOf, general } = useIssues(create.error, fieldPaths)
  return (
    <Form onSubmit={() => create.mutate()} problem={general}>
      <TextField
        label={common.name}
        required
        autoFocus
        value={value.name}
        onChange={(name) => change({ name })}
        error={errorOf("name")}
      />
      <CheckboxGroup
        label={t.scopes}
        options={membersOf(scopeTexts).map((one) => [one, ...scopeTexts[one]] as const)}
        value={value.scopes}
        onChange={(scopes) => change({ scopes })}
        error={errorOf("scopes")}
      />
      <TextField
        label={t.until}
        help={t.untilHelp}
        type="datetime-local"
        value={value.until}
        onChange={(until) => change({ until })}
        error={errorOf("expiresAt")}
      />
      <DialogActions
        draft={draft}
        busy={create.isPending}
        onClose={onClose}
        showsSecret
        action={common.create}
      />
    </Form>
  )
}

const RevokeAction = ({ token }: { readonly token: Token }) => {
  const t = useText(words)
  const queries = useQueryClient()
  if (token.status === "REVOKED") return null
  return (
    <RowActions
      of={token.name}
      actions={[
        {
          label: t.revoke,
          does: {
            title: t.revocation,
            question: t.question(token.name),
            action: t.revoke,
            onConfirm: () =>
              revokeToken(token.id).then(() => queries.invalidateQueries({ queryKey: tokens.queryKey }))
          }
        }
      ]}
    />
  )
}

const Tokens = () => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { ago, moment } = useFormat()
  const query = useInfiniteQuery(tokens)
  const scopeTexts = useScopeTexts()
  const scopeNames = new Map<string, string>(
    membersOf(scopeTexts).map((one) => [one, scopeTexts[one][0]] as const)
  )
  const { button, dialog } = useCreateDialog({
    title: t.add,
    form: (close) => <CreateToken onClose={close} />
  })
  return (
    <Page
      title={t.title}
      lead={t.lead}
      guide="manage#access-tokens"
      actions={isEmptyList(query, (page) => page.tokens) ? undefined : button}
    >
      {dialog}
      <Listing
        query={query}
        rowsOf={(page) => page.tokens}
        empty={<Empty title={t.empty} lead={t.emptyLead} action={button} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: common.name,
            cell: ({ expiresAt, name, prefix }) => (
              <Cell
                notes={[
                  <code key="prefix">{prefix}…</code>,
                  expiresAt === null ? null : `${t.until} ${moment(expiresAt)}`
                ]}
              >
                <strong>{name}</strong>
              </Cell>
            )
          },
          {
            title: t.scopes,
            cell: ({ scopes }) => scopes.map((scope) => scopeNames.get(scope) ?? scope).join(", ")
          },
          { title: t.by, cell: ({ user }) => user.email },
          { title: t.state, cell: ({ status }) => <Badge tone={tones[status]}>{t[status]}</Badge> },
          {
            title: t.used,
            noWrap: true,
            cell: ({ lastUsedAt }) => (lastUsedAt === null ? t.never : ago(lastUsedAt))
          }
        ]}
        actions={(token) => <RevokeAction token={token} />}
      />
    </Page>
  )
}

export default Tokens
