/** The form that connects an account at a messaging provider. */
import { useQueryClient } from "@tanstack/react-query"
import {
  channels,
  createChannel,
  hasEnteredAccountId,
  type Provider,
  providers,
  type SenderRule,
  senderRules
} from "../../../api/Channels.ts"
import { Select, TextField } from "../../../components/Field.tsx"
import { DialogActions } from "../../../forms/DialogActions.tsx"
import { Form } from "../../../forms/Form.tsx"
import { useDraft } from "../../../forms/useDraft.ts"
import { useSaveAndClose } from "../../../forms/useSaveAndClose.ts"
import { useIssues } from "../../../forms/useIssues.ts"
import { commonTexts } from "../../../text/commonTexts.ts"
import { texts, useText } from "../../../text/Language.tsx"

const words = texts(
  {
    add: "New channel",
    provider: "Provider",
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
    any: "All"
  },
  {
    add: "Neuer Kanal",
    provider: "Anbieter",
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
    any: "Alle"
  }
)

/** Names of the providers. */
export const providerNames = texts(
  {
    whatsapp: "WhatsApp",
    messenger: "Messenger",
    telegram: "Telegram",
    slack: "Slack",
    email: "E-mail"
  },
  {
    whatsapp: "WhatsApp",
    messenger: "Messenger",
    telegram: "Telegram",
    slack: "Slack",
    email: "E-Mail"
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

export const CreateChannel = ({
  agentId,
  onClose
}: {
  readonly agentId: string
  readonly onClose: () => void
}) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const names = useText(providerNames)
  const queries = useQueryClient()
  const draft = useDraft({
    name: `channel.${agentId}`,
    title: t.add,
    stored: emptyForm,
    secretFields: ["accessToken", "signingSecret"]
  })
  const { change, value } = draft
  const create = useSaveAndClose({
    save: () => createChannel(agentId, requestOf(value)),
    refresh: () => queries.invalidateQueries({ queryKey: channels(agentId).queryKey }),
    onClose,
    draft
  })
  const { errorOf, general } = useIssues(create.error, fieldPaths)
  return (
    <Form onSubmit={() => create.mutate()} problem={general}>
      <Select
        label={t.provider}
        options={providers.map((one) => [one, names[one]] as const)}
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
      <DialogActions draft={draft} busy={create.isPending} onClose={onClose} action={common.create} />
    </Form>
  )
}
