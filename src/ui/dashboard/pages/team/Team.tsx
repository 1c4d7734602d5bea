/** The members of the team: invite, change the role, remove. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useLocation } from "wouter"
import { membersOf } from "../../api/membersOf.ts"
import { atLeast, type Role, type User } from "../../api/Session.ts"
import {
  changeRole,
  type Invitation,
  invite,
  inviteAgain,
  type Member,
  members,
  removeMember
} from "../../api/Team.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Actions as FormActions } from "../../components/Dialog.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { useShowSecret } from "../../components/OneTimeSecret.tsx"
import { Page } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { RowActions } from "../../components/RowActions.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Team.module.css"
import { Listing, useCreateDialog } from "../../components/Listing.tsx"

const words = texts(
  {
    title: "Team",
    lead: "Owners and admins change things, agents answer customers, viewers look.",
    add: "Invite somebody",
    email: "E-mail",
    role: "Role",
    roleOf: (email: string) => `Role of ${email}`,
    owner: "Owner",
    admin: "Admin",
    agent: "Agent",
    viewer: "Viewer",
    since: "Since",
    pending: "Invited",
    off: "Switched off",
    you: "You",
    again: "New link",
    remove: "Remove",
    sessions: "Sessions",
    elsewhere: "They sign in with single sign-on. There is no link to send.",
    removal: "Remove from the team",
    question: (email: string) => `${email} is signed out everywhere at once.`,
    link: "Invitation link",
    linkHelp: (until: string) =>
      `Send this link. It works once, until ${until}, and is not shown again. Whoever opens it chooses the password.`
  },
  {
    title: "Team",
    lead: "Inhaber und Admins ändern, Bearbeiter antworten Kunden, Betrachter sehen zu.",
    add: "Jemanden einladen",
    email: "E-Mail",
    role: "Rolle",
    roleOf: (email: string) => `Rolle von ${email}`,
    owner: "Inhaber",
    admin: "Admin",
    agent: "Bearbeiter",
    viewer: "Betrachter",
    since: "Seit",
    pending: "Eingeladen",
    off: "Abgeschaltet",
    you: "Das sind Sie",
    again: "Neuer Link",
    remove: "Entfernen",
    sessions: "Sitzungen",
    elsewhere: "Die Anmeldung geht über Single Sign-on. Es gibt keinen Link zu verschicken.",
    removal: "Aus dem Team entfernen",
    question: (email: string) => `${email} wird überall sofort abgemeldet.`,
    link: "Einladungslink",
    linkHelp: (until: string) =>
      `Diesen Link verschicken. Er gilt einmal, bis ${until}, und wird nicht wieder gezeigt. Wer ihn öffnet, wählt das Passwort.`
  }
)

const roles = membersOf<Role>({ owner: true, admin: true, agent: true, viewer: true })

const useRoleOptions = (user: User): ReadonlyArray<readonly [Role, string]> => {
  const t = useText(words)
  return roles.filter((role) => atLeast(user.role, role)).map((role) => [role, t[role]] as const)
}

const useShowLink = () => {
  const t = useText(words)
  const { moment } = useFormat()
  const showSecret = useShowSecret()
  return ({ expiresAt, token }: Invitation) =>
    showSecret({
      title: t.link,
      label: t.link,
      help: t.linkHelp(moment(expiresAt)),
      secret: `${location.origin}/app/welcome#${token}`
    })
}

const defaultRole = (): Role => "agent"
const emptyForm = { email: "", role: defaultRole() }

const InviteForm = ({ user, onClose }: { readonly user: User; readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const options = useRoleOptions(user)
  const draft = useDraft({ name: "invitation", title: t.add, stored: emptyForm })
  const { change, value } = draft
  const showLink = useShowLink()
  const attempt = useMutation({
    mutationFn: () => invite(value.email, value.role),
    onSuccess: ({ invitation }) => {
      draft.saved()
      if (invitation !== null) {
        onClose()
        showLink(invitation)
      }
      // The link is shown without waiting for the list.
      void queries.invalidateQueries({ queryKey: members.queryKey })
    }
  })
  const { errorOf, general } = useIssues(attempt.error, ["email", "role"])
  if (attempt.data?.invitation === null) {
    return (
      <>
        <p>{t.elsewhere}</p>
        <FormActions>
          <Button kind="primary" onClick={onClose}>
            {common.done}
          </Button>
        </FormActions>
      </>
    )
  }
  return (
    <Form onSubmit={() => attempt.mutate()} problem={general}>
      <TextField
        label={t.email}
        type="email"
        required
        autoFocus
        value={value.email}
        onChange={(email) => change({ email })}
        error={errorOf("email")}
      />
      <Select label={t.role} options={options} value={value.role} onChange={(role) => change({ role })} />
      <DialogActions draft={draft} busy={attempt.isPending} onClose={onClose} action={t.add} showsSecret />
    </Form>
  )
}

interface RowProps {
  readonly member: Member
  readonly user: User
}

/** Admins and owners manage others of at most their own role. */
const canManage = (user: User, member: Member): boolean =>
  atLeast(user.role, "admin") && atLeast(user.role, member.role) && member.id !== user.id

const RoleSelect = ({ member, user }: RowProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const options = useRoleOptions(user)
  const change = useMutation({
    mutationFn: (role: Role) => changeRole(member.id, role),
    onSettled: () => queries.invalidateQueries({ queryKey: members.queryKey })
  })
  return canManage(user, member) ? (
    <>
      <Select
        compact
        label={t.roleOf(member.email)}
        options={options}
        value={member.role}
        onChange={(role) => change.mutate(role)}
        disabled={change.isPending}
      />
      {change.error === null ? null : <Problem problem={change.error} />}
    </>
  ) : (
    t[member.role]
  )
}

const Actions = ({ member, user }: RowProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const showLink = useShowLink()
  const again = useMutation({
    mutationFn: () => inviteAgain(member.id),
    onSuccess: ({ invitation }) => {
      if (invitation !== null) showLink(invitation)
    }
  })
  const [, navigate] = useLocation()
  if (!canManage(user, member)) return null
  return (
    <RowActions
      of={member.email}
      id={member.id}
      problem={again.error}
      actions={[
        ...(member.invited ? [{ label: t.again, does: () => again.mutate() }] : []),
        ...(user.role === "owner" && !member.invited
          ? [{ label: t.sessions, does: () => navigate(`/team/${member.id}/sessions`) }]
          : []),
        {
          label: t.remove,
          does: {
            title: t.removal,
            question: t.question(member.email),
            action: t.remove,
            onConfirm: () =>
              removeMember(member.id).then(() => queries.invalidateQueries({ queryKey: members.queryKey }))
          }
        }
      ]}
    />
  )
}

const Team = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const { ago } = useFormat()
  const query = useInfiniteQuery(members)
  const { button, dialog } = useCreateDialog({
    title: t.add,
    form: (close) => <InviteForm user={user} onClose={close} />
  })
  const add = atLeast(user.role, "admin") ? button : null
  return (
    <Page title={t.title} lead={t.lead} guide="authentication#the-team" actions={add}>
      {dialog}
      <Listing
        query={query}
        rowsOf={(page) => page.users}
        empty={null}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: t.email,
            cell: (member) => (
              <span className={css["who"]}>
                <strong>{member.email}</strong>
                {member.id === user.id ? <Badge tone="neutral">{t.you}</Badge> : null}
                {member.active ? null : <Badge tone="bad">{t.off}</Badge>}
                {member.invited ? <Badge tone="warn">{t.pending}</Badge> : null}
              </span>
            )
          },
          { title: t.role, cell: (member) => <RoleSelect member={member} user={user} /> },
          { title: t.since, noWrap: true, cell: ({ createdAt }) => ago(createdAt) }
        ]}
        actions={(member) => <Actions member={member} user={user} />}
      />
    </Page>
  )
}

export default Team
