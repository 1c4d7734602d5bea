/** Single sign-on of the tenant, for its owners. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { type Connection, connect, disconnect, singleSignOn } from "../../api/SingleSignOn.ts"
import type { Role } from "../../api/Session.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { Switch } from "../../components/Checkboxes.tsx"
import { Select, TextArea, TextField } from "../../components/Field.tsx"
import { Menu } from "../../components/Menu.tsx"
import { Loaded, Page, Section } from "../../components/Page.tsx"
import { ConflictingValue, DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { linesOf } from "../../forms/lines.ts"
import { requireUnchanged } from "../../forms/requireUnchanged.ts"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { Provisioning } from "./Provisioning.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    title: "Single sign-on",
    provider: "Provider",
    who: "Who may sign in",
    whoLead: "By the domain of their e-mail address.",
    roles: "Roles",
    rolesLead: "What people may do, by their groups at the provider.",
    lead: "People of the team sign in at your own provider (Entra ID, Okta, Google, Keycloak and others) by OpenID Connect.",
    redirect: "Redirect address",
    redirectHelp: "Enter this at the provider.",
    issuer: "Issuer",
    issuerHelp: "The provider’s address, for example https://login.example.com.",
    clientId: "Client ID",
    clientSecret: "Client secret",
    kept: "Leave it empty to keep the one that is stored.",
    domains: "E-mail domains",
    domainsHelp: "One a line. Each counts once the operator of this server has confirmed it.",
    confirmed: "Confirmed",
    waiting: "Waits for the operator",
    groupsClaim: "Claim with the groups",
    groupsClaimHelp: "Often called groups. Leave it empty to give roles here.",
    groupRoles: "Roles of groups",
    groupRolesHelp: "One a line: group = owner, admin, agent or viewer. The highest counts, at each sign-in.",
    defaultRole: "Role without such a group",
    nobody: "No access",
    owner: "Owner",
    admin: "Admin",
    agent: "Agent",
    viewer: "Viewer",
    createsPeople: "Add people to the team when they sign in first",
    trustsEmail: "Trust e-mail addresses that the provider does not call verified",
    allowsPasswords: "Passwords work, too",
    on: "on",
    off: "off",
    remove: "Remove",
    removal: "Remove single sign-on",
    question: "Whoever signed in with it is signed out at once. Passwords work again."
  },
  {
    title: "Single Sign-on",
    provider: "Anbieter",
    who: "Wer sich anmelden darf",
    whoLead: "Nach der Domain der E-Mail-Adresse.",
    roles: "Rollen",
    rolesLead: "Was Personen dürfen, nach ihren Gruppen beim Anbieter.",
    lead: "Das Team meldet sich beim eigenen Anbieter an (Entra ID, Okta, Google, Keycloak und andere), über OpenID Connect.",
    redirect: "Rücksprungadresse",
    redirectHelp: "Diese Adresse beim Anbieter eintragen.",
    issuer: "Aussteller",
    issuerHelp: "Die Adresse des Anbieters, zum Beispiel https://login.example.com.",
    clientId: "Client-ID",
    clientSecret: "Client-Geheimnis",
    kept: "Leer lassen, um das gespeicherte zu behalten.",
    domains: "E-Mail-Domains",
    domainsHelp: "Eine je Zeile. Jede gilt, sobald der Betreiber dieses Servers sie bestätigt hat.",
    confirmed: "Bestätigt",
    waiting: "Wartet auf den Betreiber",
    groupsClaim: "Angabe mit den Gruppen",
    groupsClaimHelp: "Heißt oft groups. Leer lassen, um Rollen hier zu vergeben.",
    groupRoles: "Rollen der Gruppen",
    groupRolesHelp:
      "Eine je Zeile: Gruppe = owner, admin, agent oder viewer. Die höchste gilt, bei jeder Anmeldung.",
    defaultRole: "Rolle ohne eine solche Gruppe",
    nobody: "Kein Zugang",
    owner: "Inhaber",
    admin: "Admin",
    agent: "Bearbeiter",
    viewer: "Betrachter",
    createsPeople: "Wer sich erstmals anmeldet, kommt ins Team",
    trustsEmail: "E-Mail-Adressen vertrauen, die der Anbieter nicht bestätigt nennt",
    allowsPasswords: "Passwörter gelten auch",
    on: "an",
    off: "aus",
    remove: "Entfernen",
    removal: "Single Sign-on entfernen",
    question: "Wer sich damit angemeldet hat, wird sofort abgemeldet. Passwörter gelten wieder."
  }
)

const roles = ["owner", "admin", "agent", "viewer"] as const
const isRole = (text: string): text is Role => roles.some((role) => role === text)

/** Splits at the last equals sign, because names of groups may contain some: `cn=staff,ou=groups = agent`. */
const parseRule = (line: string) => {
  const separator = line.lastIndexOf("=")
  const role = line.slice(separator + 1).trim()
  return { group: line.slice(0, Math.max(0, separator)).trim(), role: isRole(role) ? role : null }
}

const noDefaultRole = (): Role | "none" => "none"

const fieldsOf = (connection: Connection | null) => ({
  issuer: connection?.issuer ?? "",
  clientId: connection?.clientId ?? "",
  domains: (connection?.domains ?? []).map(({ domain }) => domain).join("\n"),
  groupsClaim: connection?.groupsClaim ?? "",
  groupRoles: (connection?.groupRoles ?? []).map(({ group, role }) => `${group} = ${role}`).join("\n"),
  defaultRole: connection === null ? "viewer" : (connection.defaultRole ?? noDefaultRole()),
  createsPeople: connection?.createsPeople ?? true,
  trustsEmail: connection?.trustsEmail ?? false,
  allowsPasswords: connection?.allowsPasswords ?? true
})

const fieldPaths = [
  "issuer",
  "clientId",
  "clientSecret",
  "domains",
  "groupsClaim",
  "groupRoles",
  "defaultRole"
] as const

interface ConnectionFormProps {
  readonly connection: Connection | null
  /** The address to register with the provider. */
  readonly redirectUri: string
}

const ConnectionForm = ({ connection, redirectUri }: ConnectionFormProps) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  // Drafts never contain secrets.
  const [secret, setSecret] = useState("")
  const draft = useDraft({ name: "single-sign-on", title: t.title, stored: fieldsOf(connection) })
  const { change, value } = draft
  const refresh = () => queries.invalidateQueries({ queryKey: singleSignOn.queryKey })
  const rules = linesOf(value.groupRoles).map(parseRule)
  const onOrOff = (on: unknown) => (on === true ? t.on : t.off)
  const hasInvalidRule = rules.some(({ group, role }) => group === "" || role === null)
  const save = useMutation({
    mutationFn: async () => {
      const newest = await queries.fetchQuery({ ...singleSignOn, staleTime: 0 })
      requireUnchanged(fieldsOf(connection), fieldsOf(newest.connection))
      return connect({
        issuer: value.issuer,
        clientId: value.clientId,
        ...(secret === "" ? {} : { clientSecret: secret }),
        domains: linesOf(value.domains.replaceAll(",", "\n")),
        groupsClaim: value.groupsClaim.trim() === "" ? null : value.groupsClaim,
        groupRoles: rules.flatMap(({ group, role }) => (role === null ? [] : [{ group, role }])),
        defaultRole: value.defaultRole === "none" ? null : value.defaultRole,
        createsPeople: value.createsPeople,
        trustsEmail: value.trustsEmail,
        allowsPasswords: value.allowsPasswords
      })
    },
    onMutate: () => value,
    onSuccess: async (_, __, sent) => {
      draft.saved(sent)
      setSecret("")
      await refresh()
    }
  })
  const { errorOf, general } = useIssues(save.error, fieldPaths)
  return (
    <Form onSubmit={() => (hasInvalidRule ? undefined : save.mutate())} problem={general} draft={draft}>
      <Section title={t.provider} lead={t.redirectHelp} guide="single-sign-on#set-it-up" beside>
        <Copyable label={t.redirect} value={redirectUri} />
        <TextField
          label={t.issuer}
          help={t.issuerHelp}
          guide="single-sign-on#set-it-up"
          inputMode="url"
          required
          value={value.issuer}
          onChange={(issuer) => change({ issuer })}
          error={errorOf("issuer")}
        />
        <ConflictingValue draft={draft} name="issuer" />
        <TextField
          label={t.clientId}
          required
          value={value.clientId}
          onChange={(clientId) => change({ clientId })}
          error={errorOf("clientId")}
        />
        <ConflictingValue draft={draft} name="clientId" />
        <TextField
          label={t.clientSecret}
          {...(connection === null ? {} : { help: t.kept })}
          type="password"
          autoComplete="off"
          required={connection === null}
          value={secret}
          onChange={setSecret}
          error={errorOf("clientSecret")}
        />
      </Section>
      <Section title={t.who} lead={t.whoLead} beside>
        <TextArea
          label={t.domains}
          help={t.domainsHelp}
          rows={2}
          value={value.domains}
          onChange={(domains) => change({ domains })}
          error={errorOf("domains")}
        />
        <ConflictingValue draft={draft} name="domains" />
        {(connection?.domains ?? []).map(({ confirmed, domain }) => (
          <p key={domain}>
            {domain} <Badge tone={confirmed ? "good" : "warn"}>{confirmed ? t.confirmed : t.waiting}</Badge>
          </p>
        ))}
        <Switch
          label={t.createsPeople}
          isSelected={value.createsPeople}
          onChange={(createsPeople) => change({ createsPeople })}
        />
        <ConflictingValue draft={draft} name="createsPeople" format={onOrOff} />
        <Switch
          label={t.trustsEmail}
          isSelected={value.trustsEmail}
          onChange={(trustsEmail) => change({ trustsEmail })}
        />
        <ConflictingValue draft={draft} name="trustsEmail" format={onOrOff} />
        <Switch
          label={t.allowsPasswords}
          isSelected={value.allowsPasswords}
          onChange={(allowsPasswords) => change({ allowsPasswords })}
        />
        <ConflictingValue draft={draft} name="allowsPasswords" format={onOrOff} />
      </Section>
      <Section title={t.roles} lead={t.rolesLead} beside>
        <TextField
          label={t.groupsClaim}
          help={t.groupsClaimHelp}
          value={value.groupsClaim}
          onChange={(groupsClaim) => change({ groupsClaim })}
          error={errorOf("groupsClaim")}
        />
        <ConflictingValue draft={draft} name="groupsClaim" />
        <TextArea
          label={t.groupRoles}
          help={t.groupRolesHelp}
          rows={3}
          value={value.groupRoles}
          onChange={(groupRoles) => change({ groupRoles })}
          error={hasInvalidRule ? t.groupRolesHelp : errorOf("groupRoles")}
        />
        <ConflictingValue draft={draft} name="groupRoles" />
        <Select
          label={t.defaultRole}
          options={[["none", t.nobody], ...roles.map((role) => [role, t[role]] as const)]}
          value={value.defaultRole}
          onChange={(defaultRole) => change({ defaultRole })}
        />
        <ConflictingValue draft={draft} name="defaultRole" />
      </Section>
      <Actions sticky>
        <DraftState draft={draft}>{save.isSuccess ? common.saved : ""}</DraftState>
        <Button kind="primary" type="submit" busy={save.isPending}>
          {common.save}
        </Button>
      </Actions>
    </Form>
  )
}

const SingleSignOn = () => {
  const t = useText(words)
  const queries = useQueryClient()
  const query = useQuery(singleSignOn)
  const isStored = query.data !== undefined && query.data.connection !== null
  return (
    <Page
      title={t.title}
      lead={t.lead}
      guide="single-sign-on"
      narrow
      actions={
        isStored ? (
          <Menu
            actions={[
              {
                label: t.remove,
                does: {
                  title: t.removal,
                  question: t.question,
                  action: t.remove,
                  onConfirm: () =>
                    disconnect().then(() => queries.invalidateQueries({ queryKey: singleSignOn.queryKey }))
                }
              }
            ]}
          />
        ) : null
      }
    >
      <Loaded query={query}>
        {({ connection, redirectUri }) => (
          <>
            <ConnectionForm
              key={connection === null ? "new" : "stored"}
              connection={connection}
              redirectUri={redirectUri}
            />
            {/* Last, because it loads later, and would move what is below it. */}
            {connection === null ? null : <Provisioning />}
          </>
        )}
      </Loaded>
    </Page>
  )
}

export default SingleSignOn
