/** API keys: create, deactivate, revoke. A secret is shown once. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { createKey, type Key, keys, type OfferedPermission, revokeKey, setActive } from "../../api/Keys.ts"
import { membersOf } from "../../api/membersOf.ts"
import { Badge, type Tone } from "../../components/Badge.tsx"
import { CheckboxGroup } from "../../components/Checkboxes.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { TextField } from "../../components/Field.tsx"
import { MoreOptions } from "../../components/MoreOptions.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../components/Listing.tsx"
import { useShowSecret } from "../../components/OneTimeSecret.tsx"
import { Empty } from "../../components/Page.tsx"
import { Cell, RowActions } from "../../components/RowActions.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { AgentPart, type PartProps } from "./AgentPart.tsx"
import { EditLimit, Limit, LimitFields, limitOf, limitPaths, noLimit, useLimitTitle } from "./KeyLimit.tsx"
import { ScopeFields, noScope, scopeOf, scopePaths, useScopeText } from "./ScopeFields.tsx"
import { OriginsField } from "./OriginsField.tsx"
import { parseOrigins, validOrigins } from "./parseOrigins.ts"

const words = texts(
  {
    title: "Keys",
    lead: "A key lets a program, or the widget, speak with this agent and no other.",
    add: "New key",
    empty: "No key yet",
    emptyLead: "Create one for your server or your own program. The widget needs none: it has its own line.",
    permissions: "What it may do",
    chat: "Chat",
    chatMeans: "Ask, and read its own conversations. All that the widget needs.",
    retrieve: "Search",
    retrieveMeans: "Find passages without an answer.",
    ingest: "Sources",
    ingestMeans: "Add, change and delete sources.",
    usage: "Usage",
    usageMeans: "Read what the period has used.",
    trace: "Traces",
    traceMeans: "Read what happened in a turn. For trusted servers only.",
    visitors: "Visitor tokens",
    visitorsMeans: "Say who a visitor is and what they may read. For trusted servers only.",
    origins: "Only from these pages",
    originsHelp:
      "One origin a line, such as https://www.example.com. Empty: from anywhere. A key in a web page needs this.",
    expires: "Until",
    expiresHelp: "Empty: until it is revoked.",
    secret: "The key",
    secretHelp: "Copy it now. It is not shown again.",
    tryIt: "Try it",
    state: "State",
    used: "Last used",
    never: "Never",
    off: "Switch off",
    on: "Switch on",
    revoke: "Revoke",
    revocation: "Revoke the key",
    question: (name: string) => `Whatever uses “${name}” stops working within a second, for good.`,
    everything: "Everything",
    ACTIVE: "Active",
    INACTIVE: "Off",
    REVOKED: "Revoked",
    EXPIRED: "Expired"
  },
  {
    title: "Schlüssel",
    lead: "Ein Schlüssel lässt ein Programm oder das Widget mit diesem und keinem anderen Agenten sprechen.",
    add: "Neuer Schlüssel",
    empty: "Noch kein Schlüssel",
    emptyLead:
      "Legen Sie einen für Ihren Server oder Ihr Programm an. Das Widget braucht keinen: Es hat eine eigene Zeile.",
    permissions: "Was er darf",
    chat: "Chat",
    chatMeans: "Fragen und die eigenen Gespräche lesen. Mehr braucht das Widget nicht.",
    retrieve: "Suche",
    retrieveMeans: "Abschnitte finden, ohne Antwort.",
    ingest: "Quellen",
    ingestMeans: "Quellen anlegen, ändern und löschen.",
    usage: "Verbrauch",
    usageMeans: "Lesen, was im Zeitraum verbraucht ist.",
    trace: "Abläufe",
    traceMeans: "Lesen, was in einer Antwort geschah. Nur für vertraute Server.",
    visitors: "Besucher-Token",
    visitorsMeans: "Sagen, wer ein Besucher ist und was er lesen darf. Nur für vertraute Server.",
    origins: "Nur von diesen Seiten",
    originsHelp:
      "Je Zeile eine Herkunft, etwa https://www.example.com. Leer: von überall. Ein Schlüssel in einer Webseite braucht das.",
    expires: "Bis",
    expiresHelp: "Leer: bis er widerrufen wird.",
    secret: "Der Schlüssel",
    secretHelp: "Jetzt kopieren. Er wird nicht wieder gezeigt.",
    tryIt: "Ausprobieren",
    state: "Stand",
    used: "Zuletzt benutzt",
    never: "Nie",
    off: "Ausschalten",
    on: "Einschalten",
    revoke: "Widerrufen",
    revocation: "Schlüssel widerrufen",
    question: (name: string) => `Was „${name}“ benutzt, geht binnen einer Sekunde nicht mehr, für immer.`,
    everything: "Alles",
    ACTIVE: "Aktiv",
    INACTIVE: "Aus",
    REVOKED: "Widerrufen",
    EXPIRED: "Abgelaufen"
  }
)

const tones: Record<Key["status"], Tone> = {
  ACTIVE: "good",
  INACTIVE: "neutral",
  REVOKED: "bad",
  EXPIRED: "warn"
}

const curlCommand = (secret: string) =>
  `curl ${location.origin}/v1/chat -H "authorization: Bearer ${secret}" -H "content-type: application/json" -d '{"message": "Hello"}'`

/** The name and the description of each permission. */
const usePermissionTexts = (): Record<OfferedPermission, readonly [string, string]> => {
  const t = useText(words)
  return {
    chat: [t.chat, t.chatMeans],
    retrieve: [t.retrieve, t.retrieveMeans],
    ingest: [t.ingest, t.ingestMeans],
    "usage.read": [t.usage, t.usageMeans],
    trace_read: [t.trace, t.traceMeans],
    visitor_tokens: [t.visitors, t.visitorsMeans]
  }
}

const defaultPermissions = (): ReadonlyArray<OfferedPermission> => ["chat"]
const emptyForm = {
  name: "",
  permissions: defaultPermissions(),
  origins: "",
  until: "",
  ...noScope,
  ...noLimit
}
const fieldPaths = [
  "name",
  "permissions",
  "allowedOrigins",
  "expiresAt",
  ...scopePaths,
  ...limitPaths
] as const

const CreateKey = ({ agentId, onClose }: { readonly agentId: string; readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const draft = useDraft({ name: `key.${agentId}`, title: t.add, stored: emptyForm })
  const { change, value } = draft
  const permissionTexts = usePermissionTexts()
  const showSecret = useShowSecret()
  const rateLimit = limitOf(value)
  const parsedOrigins = parseOrigins(value.origins)
  const allowedOrigins = validOrigins(parsedOrigins)
  const create = useMutation({
    mutationFn: () =>
      createKey(agentId, {
        name: value.name,
        permissions: value.permissions,
        ...(allowedOrigins.length === 0 ? {} : { allowedOrigins }),
        ...(value.until === "" ? {} : { expiresAt: new Date(value.until).toISOString() }),
        ...(rateLimit === null ? {} : { rateLimit }),
        ...scopeOf(value)
      }),
    onSuccess: ({ secret }) => {
      draft.saved()
      onClose()
      showSecret({
        title: t.add,
        label: t.secret,
        help: t.secretHelp,
        secret,
        instructions: <Copyable label={t.tryIt} value={curlCommand(secret)} />
      })
      // The secret is shown without waiting for the list.
      void queries.invalidateQueries({ queryKey: keys(agentId).queryKey })
    }
  })
  const { errorOf, general } = useIssues(create.error, fieldPaths)
  const permissionError = errorOf("permissions")
  const hasOptionalInput = value.until !== "" || value.limited || value.requests !== ""
  const hasOptionalError = [...limitPaths, ...scopePaths, "expiresAt" as const].some(errorOf)
  const submit = () => {
    // Invalid origins are reported at the field.
    if (parsedOrigins.every(({ origin }) => origin !== null)) create.mutate()
  }
  return (
    <Form onSubmit={submit} problem={general}>
      <TextField
        label={common.name}
        required
        autoFocus
        value={value.name}
        onChange={(name) => change({ name })}
        error={errorOf("name")}
      />
      <CheckboxGroup
        label={t.permissions}
        options={membersOf(permissionTexts).map((one) => [one, ...permissionTexts[one]] as const)}
        value={value.permissions}
        onChange={(permissions) => change({ permissions })}
        error={permissionError}
      />
      <OriginsField
        label={t.origins}
        help={t.originsHelp}
        value={value.origins}
        onChange={(origins) => change({ origins })}
        error={errorOf("allowedOrigins")}
      />
      <MoreOptions isNeeded={hasOptionalInput || hasOptionalError}>
        <TextField
          label={t.expires}
          help={t.expiresHelp}
          type="datetime-local"
          value={value.until}
          onChange={(until) => change({ until })}
          error={errorOf("expiresAt")}
        />
        <ScopeFields agentId={agentId} value={value} onChange={change} errorOf={errorOf} />
        <LimitFields value={value} onChange={change} errorOf={errorOf} />
      </MoreOptions>
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

const Actions = ({ agentId, apiKey }: { readonly agentId: string; readonly apiKey: Key }) => {
  const t = useText(words)
  const limitTitle = useLimitTitle()
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: keys(agentId).queryKey })
  const toggle = useMutation({
    mutationFn: () => setActive(apiKey, apiKey.status !== "ACTIVE"),
    onSettled: refresh
  })
  if (apiKey.status === "REVOKED") return null
  const verb = apiKey.status === "ACTIVE" ? t.off : t.on
  return (
    <RowActions
      of={apiKey.name}
      id={apiKey.id}
      problem={toggle.error}
      actions={[
        {
          label: limitTitle,
          does: {
            title: `${limitTitle}: ${apiKey.name}`,
            form: (close) => <EditLimit agentId={agentId} apiKey={apiKey} onClose={close} />
          }
        },
        ...(apiKey.status === "EXPIRED" ? [] : [{ label: verb, does: () => toggle.mutate() }]),
        {
          label: t.revoke,
          does: {
            title: t.revocation,
            question: t.question(apiKey.name),
            action: t.revoke,
            onConfirm: () => revokeKey(apiKey.id).then(refresh)
          }
        }
      ]}
    />
  )
}

const Keys = ({ agent, user }: PartProps) => {
  const agentId = agent.id
  const t = useText(words)
  const common = useText(commonTexts)
  const limitTitle = useLimitTitle()
  const scopeText = useScopeText()
  const { ago, moment } = useFormat()
  const query = useInfiniteQuery(keys(agentId))
  const permissionTexts = usePermissionTexts()
  const permissionNames = new Map<string, string>([
    ...membersOf(permissionTexts).map((one) => [one, permissionTexts[one][0]] as const),
    ["*", t.everything]
  ])
  const { button, dialog } = useCreateDialog({
    title: t.add,
    form: (close) => <CreateKey agentId={agentId} onClose={close} />,
    wide: true
  })
  return (
    <AgentPart
      part="keys"
      showsId
      agent={agent}
      user={user}
      lead={t.lead}
      guide="authentication"
      actions={isEmptyList(query, (page) => page.keys) ? undefined : button}
    >
      {dialog}
      <Listing
        query={query}
        rowsOf={(page) => page.keys}
        textOf={({ name, prefix }) => `${name} ${prefix}`}
        empty={<Empty title={t.empty} lead={t.emptyLead} action={button} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: common.name,
            cell: ({ name, prefix, allowedOrigins, expiresAt, sourceScope }) => (
              <Cell
                notes={[
                  <code key="prefix">{prefix}…</code>,
                  expiresAt === null ? null : `${t.expires} ${moment(expiresAt)}`,
                  allowedOrigins.join(", "),
                  sourceScope === null ? null : scopeText(sourceScope)
                ]}
              >
                <strong>{name}</strong>
              </Cell>
            )
          },
          {
            title: t.permissions,
            cell: ({ permissions }) => (
              <span>{permissions.map((one) => permissionNames.get(one) ?? one).join(", ")}</span>
            )
          },
          {
            title: limitTitle,
            noWrap: true,
            cell: ({ rateLimit }) => <Limit rateLimit={rateLimit} />
          },
          { title: t.state, cell: ({ status }) => <Badge tone={tones[status]}>{t[status]}</Badge> },
          {
            title: t.used,
            noWrap: true,
            cell: ({ lastUsedAt }) => (lastUsedAt === null ? t.never : ago(lastUsedAt))
          }
        ]}
        actions={(apiKey) => <Actions agentId={agentId} apiKey={apiKey} />}
      />
    </AgentPart>
  )
}

export default Keys
