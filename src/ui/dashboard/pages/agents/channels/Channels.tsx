/** The messaging channels of an agent, with the values to enter at the provider. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { type Channel, channels, deleteChannel, isProvider, setChannelActive } from "../../../api/Channels.ts"
import { atLeast } from "../../../api/Session.ts"
import { Badge } from "../../../components/Badge.tsx"
import { Copyable } from "../../../components/Copyable.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../../components/Listing.tsx"
import { Empty, Section } from "../../../components/Page.tsx"
import { Cell, RowActions } from "../../../components/RowActions.tsx"
import { commonTexts } from "../../../text/commonTexts.ts"
import { useFormat } from "../../../text/Format.ts"
import { texts, useText } from "../../../text/Language.tsx"
import { AgentPart, type PartProps } from "../AgentPart.tsx"
import { ScopeForm, useScopeNote } from "./ChannelScope.tsx"
import { TokenForm, useTokenTitle } from "./ChannelToken.tsx"
import { CreateChannel, providerNames } from "./CreateChannel.tsx"
import { TargetProblem } from "../problems/Problems.tsx"
import { useScopeTitle } from "../ScopeFields.tsx"

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
    state: "State",
    on: "Active",
    off: "Off",
    since: "Since",
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
    state: "Stand",
    on: "Aktiv",
    off: "Aus",
    since: "Seit",
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
  const scopeTitle = useScopeTitle()
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
        {
          label: scopeTitle,
          does: {
            title: scopeTitle,
            form: (close) => <ScopeForm agentId={agentId} channel={channel} onClose={close} />
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
  const names = useText(providerNames)
  const { ago } = useFormat()
  const scopeNote = useScopeNote()
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
        empty={<Empty title={t.empty} lead={t.emptyLead} action={add} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: t.provider,
            cell: ({ channel }) => <strong>{isProvider(channel) ? names[channel] : channel}</strong>
          },
          {
            title: t.account,
            cell: (channel) => (
              <Cell notes={[scopeNote(channel)]}>
                <code>{channel.settings["address"] ?? channel.externalId}</code>
              </Cell>
            )
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
          { title: t.since, cell: ({ createdAt }) => ago(createdAt) }
        ]}
        actions={mayChange ? (channel) => <Actions agentId={agentId} channel={channel} /> : null}
      />
      {/* Shown after the list has loaded, so that it does not move. */}
      {query.isPending ? null : (
        <Section title={t.webhooks} lead={t.webhooksLead} guide="channels#webhooks" beside>
          <Copyable label={t.webhookOf(names.whatsapp)} value={`${location.origin}/api/webhooks/whatsapp`} />
          <Copyable
            label={t.webhookOf(names.messenger)}
            value={`${location.origin}/api/webhooks/messenger`}
          />
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
