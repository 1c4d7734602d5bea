/** The messaging channels of an agent, with the values to enter at the provider. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import {
  type Channel,
  channels,
  createChannel,
  deleteChannel,
  hasEnteredAccountId,
  isProvider,
  type Provider,
  providers,
  type SenderRule,
  senderRules,
  setChannelActive
} from "../../api/Channels.ts"
import { atLeast } from "../../api/Session.ts"
import { Badge } from "../../components/Badge.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../components/Listing.tsx"
import { Empty, Section } from "../../components/Page.tsx"
import { Cell, RowActions } from "../../components/RowActions.tsx"
import { CreateActions } from "../../forms/CreateActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { AgentPart, type PartProps } from "./AgentPart.tsx"
import { TokenForm, useTokenTitle } from "./ChannelToken.tsx"
import { TargetProblem } from "./problems/Problems.tsx"

const words = texts(
  {
    title: "Channels",
    lead: "Messengers and mailboxes in which the agent answers.",
    add: "New channel",
    empty: "No channel yet",
    emptyLead:
      "Connect a WhatsApp number, a Messenger Page, a Telegram bot, a Slack app or a mailbox, and the agent answers what is written to it.",
    provider: "Provider",
    account: "Account",
    whatsapp: "WhatsApp",
    messenger: "Messenger",
    telegram: "Telegram",
    slack: "Slack",
    email: "E-mail",
    phone: "Phone number ID",
    page: "Page ID",
    token: "Access token",
    tokenHelp: "Kept encrypted, never shown again.",
    signingSecret: "Signing secret",
    address: "E-mail address",
    server: "Mail server",
    serverHelp: "Such as smtps://smtp.example.com. Replies are sent there.",
    user: "User name",
    userHelp: "Empty where it is the e-mail address.",
    password: "Password",
    senders: "Answered senders",
    plausible: "All but those found to be forged",
    verified: "Only those found to be genuine",
    any: "All",
    state: "State",
    on: "Active",
    off: "Off",
    since: "Since",
    actions: "Actions",
    switchOff: "Switch off",
    switchOn: "Switch on",
    removal: "Delete channel",
    question: (account: string) => `Nothing that is written to ${account} is answered any more.`,
    webhooks: "What the provider has to know",
    webhooksLead:
      "Enter the address as the webhook of the app, with the verify token that the service was configured with (CHANNEL_VERIFY_TOKEN). Telegram is told by itself; a Slack app and a mailbox have an address of their own.",
    webhookOf: (provider: string) => `Webhook for ${provider}`,
    eventsOf: (account: string) => `Request URL for ${account} in Slack`,
    mailsOf: (account: string) => `Where mails to ${account} are delivered`
  },
  {
    title: "Kanäle",
    lead: "Messenger und Postfächer, in denen der Agent antwortet.",
    add: "Neuer Kanal",
    empty: "Noch kein Kanal",
    emptyLead:
      "Eine WhatsApp-Nummer, eine Messenger-Seite, einen Telegram-Bot, eine Slack-App oder ein Postfach anbinden, und der Agent beantwortet, was dort geschrieben wird.",
    provider: "Anbieter",
    account: "Konto",
    whatsapp: "WhatsApp",
    messenger: "Messenger",
    telegram: "Telegram",
    slack: "Slack",
    email: "E-Mail",
    phone: "ID der Telefonnummer",
    page: "ID der Seite",
    token: "Zugriffstoken",
    tokenHelp: "Wird verschlüsselt aufbewahrt und nie wieder gezeigt.",
    signingSecret: "Signaturgeheimnis",
    address: "E-Mail-Adresse",
    server: "Mailserver",
    serverHelp: "Etwa smtps://smtp.example.com. Dort werden Antworten verschickt.",
    user: "Benutzername",
    userHelp: "Leer, wo es die E-Mail-Adresse ist.",
    password: "Passwort",
    senders: "Beantwortete Absender",
    plausible: "Alle außer erkannten Fälschungen",
    verified: "Nur als echt erkannte",
    any: "Alle",
    state: "Stand",
    on: "Aktiv",
    off: "Aus",
    since: "Seit",
    actions: "Aktionen",
    switchOff: "Ausschalten",
    switchOn: "Einschalten",
    removal: "Kanal löschen",
    question: (account: string) => `Was an ${account} geschrieben wird, wird dann nicht mehr beantwortet.`,
    webhooks: "Was der Anbieter wissen muss",
    webhooksLead:
      "Die Adresse als Webhook der App eintragen, mit dem Prüftoken, mit dem der Dienst eingerichtet ist (CHANNEL_VERIFY_TOKEN). Telegram erfährt sie von selbst; jede Slack-App und jedes Postfach hat eine eigene.",
    webhookOf: (provider: string) => `Webhook für ${provider}`,
    eventsOf: (account: string) => `Request URL für ${account} in Slack`,
    mailsOf: (account: string) => `Wohin Mails an ${account} geliefert werden`
  }
)

const defaultProvider = (): Provider => "whatsapp"
const defaultSenderRule = (): SenderRule => "plausible"
const emptyForm = {
  channel: defaultProvider(),
  externalId: "",
  accessToken: "",
  signingSecret: "",
  address: "",
  server: "",
  user: "",
  senders: defaultSenderRule()
}

/** Channels whose deliveries are signed with a secret of the provider. */
const isSigned = (channel: Provider) => channel === "slack" || channel === "email"

const requestOf = (value: typeof emptyForm) => {
  const { accessToken, address, channel, externalId, senders, server, signingSecret, user } = value
  return {
    channel,
    accessToken,
    ...(hasEnteredAccountId(channel) ? { externalId } : {}),
    ...(isSigned(channel) ? { secrets: { signingSecret } } : {}),
    ...(channel === "email" ? { settings: { address, server, user, senders } } : {})
  }
}

interface MailboxProps {
  readonly value: typeof emptyForm
  readonly change: (changes: Partial<typeof emptyForm>) => void
  readonly errorOf: (field: (typeof fieldPaths)[number]) => string | undefined
}

const fieldPaths = [
  "externalId",
  "accessToken",
  "secrets.signingSecret",
  "settings.address",
  "settings.server",
  "settings.user"
] as const

const MailboxFields = ({ change, errorOf, value }: MailboxProps) => {
  const t = useText(words)
  return (
    <>
      <TextField
        label={t.address}
        type="email"
        autoComplete="off"
        required
        value={value.address}
        onChange={(address) => change({ address })}
        error={errorOf("settings.address")}
      />
      <TextField
        label={t.server}
        help={t.serverHelp}
        required
        value={value.server}
        onChange={(server) => change({ server })}
        error={errorOf("settings.server")}
      />
      <TextField
        label={t.user}
        help={t.userHelp}
        autoComplete="off"
        value={value.user}
        onChange={(user) => change({ user })}
        error={errorOf("settings.user")}
      />
      <Select
        label={t.senders}
        options={senderRules.map((one) => [one, t[one]] as const)}
        value={value.senders}
        onChange={(senders) => change({ senders })}
      />
    </>
  )
}

const CreateChannel = ({ agentId, onClose }: { readonly agentId: string; readonly onClose: () => void }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const draft = useDraft({
    name: `channel.${agentId}`,
    title: t.add,
    stored: emptyForm,
    secretFields: ["accessToken", "signingSecret"]
  })
  const { change, value } = draft
  const create = useMutation({
    mutationFn: () => createChannel(agentId, requestOf(value)),
    onSuccess: async () => {
      draft.saved()
      await queries.invalidateQueries({ queryKey: channels(agentId).queryKey })
      onClose()
    }
  })
  const { errorOf, general } = useIssues(create.error, fieldPaths)
  return (
    <Form onSubmit={() => create.mutate()} problem={general}>
      <Select
        label={t.provider}
        options={providers.map((one) => [one, t[one]] as const)}
        value={value.channel}
        onChange={(channel) => change({ channel })}
      />
      {hasEnteredAccountId(value.channel) ? (
        <TextField
          label={value.channel === "whatsapp" ? t.phone : t.page}
          required
          value={value.externalId}
          onChange={(externalId) => change({ externalId })}
          error={errorOf("externalId")}
        />
      ) : null}
      {value.channel === "email" ? <MailboxFields value={value} change={change} errorOf={errorOf} /> : null}
      <TextField
        label={value.channel === "email" ? t.password : t.token}
        help={t.tokenHelp}
        type="password"
        autoComplete="off"
        required
        value={value.accessToken}
        onChange={(accessToken) => change({ accessToken })}
        error={errorOf("accessToken")}
      />
      {isSigned(value.channel) ? (
        <TextField
          label={t.signingSecret}
          help={t.tokenHelp}
          type="password"
          autoComplete="off"
          required
          value={value.signingSecret}
          onChange={(signingSecret) => change({ signingSecret })}
          error={errorOf("secrets.signingSecret")}
        />
      ) : null}
      <CreateActions draft={draft} busy={create.isPending} onClose={onClose} />
    </Form>
  )
}

const Actions = ({ agentId, channel }: { readonly agentId: string; readonly channel: Channel }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: channels(agentId).queryKey })
  const toggle = useMutation({
    mutationFn: () => setChannelActive(channel, !channel.active),
    onSettled: refresh
  })
  const verb = channel.active ? t.switchOff : t.switchOn
  const tokenTitle = useTokenTitle()(channel)
  return (
    <RowActions
      of={channel.externalId}
      id={channel.id}
      problem={toggle.error}
      actions={[
        {
          label: tokenTitle,
          does: {
            title: tokenTitle,
            form: (close) => <TokenForm agentId={agentId} channel={channel} onClose={close} />
          }
        },
        { label: verb, does: () => toggle.mutate() },
        {
          label: common.delete,
          does: {
            title: t.removal,
            question: t.question(channel.externalId),
            action: common.delete,
            onConfirm: () => deleteChannel(channel.id).then(refresh)
          }
        }
      ]}
    />
  )
}

const Channels = ({ agent, user }: PartProps) => {
  const agentId = agent.id
  const mayChange = atLeast(user.role, "admin")
  const t = useText(words)
  const { ago } = useFormat()
  const query = useInfiniteQuery(channels(agentId))
  const { button, dialog } = useCreateDialog({
    title: t.add,
    form: (close) => <CreateChannel agentId={agentId} onClose={close} />
  })
  const add = mayChange ? button : null
  return (
    <AgentPart
      part="channels"
      agent={agent}
      user={user}
      lead={t.lead}
      guide="channels"
      actions={isEmptyList(query, (page) => page.channels) ? undefined : add}
    >
      {dialog}
      <Listing
        query={query}
        rowsOf={(page) => page.channels}
        empty={
          <Empty title={t.empty} action={add}>
            {t.emptyLead}
          </Empty>
        }
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: t.provider,
            cell: ({ channel }) => <strong>{isProvider(channel) ? t[channel] : channel}</strong>
          },
          {
            title: t.account,
            cell: ({ externalId, settings }) => <code>{settings["address"] ?? externalId}</code>
          },
          {
            title: t.state,
            cell: ({ active, id }) => (
              <Cell
                notes={[
                  <TargetProblem key="problem" agentId={agentId} kind="channel" target={id} user={user} />
                ]}
              >
                <Badge tone={active ? "good" : "neutral"}>{active ? t.on : t.off}</Badge>
              </Cell>
            )
          },
          { title: t.since, cell: ({ createdAt }) => ago(createdAt) },
          ...(mayChange
            ? [
                {
                  title: t.actions,
                  hideTitle: true,
                  alignEnd: true,
                  cell: (channel: Channel) => <Actions agentId={agentId} channel={channel} />
                }
              ]
            : [])
        ]}
      />
      {/* Shown after the list has loaded, so that it does not move. */}
      {query.isPending ? null : (
        <Section title={t.webhooks} lead={t.webhooksLead} guide="channels#webhooks" beside>
          <Copyable label={t.webhookOf(t.whatsapp)} value={`${location.origin}/api/webhooks/whatsapp`} />
          <Copyable label={t.webhookOf(t.messenger)} value={`${location.origin}/api/webhooks/messenger`} />
          {(query.data?.pages ?? [])
            .flatMap((page) => page.channels)
            .filter(({ channel }) => channel === "slack" || channel === "email")
            .map(({ channel, externalId, id, settings, webhookUrl }) => (
              <Copyable
                key={id}
                label={
                  channel === "slack" ? t.eventsOf(externalId) : t.mailsOf(settings["address"] ?? externalId)
                }
                value={webhookUrl}
              />
            ))}
        </Section>
      )}
    </AgentPart>
  )
}

export default Channels
