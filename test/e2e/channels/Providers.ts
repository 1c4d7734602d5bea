/** Stubs of all channel providers with one interface: how each delivers a text, and which messages it got. */
import { createHash, createHmac } from "node:crypto"
import { startGraph } from "../../servers/GraphStub.ts"
import { startSmtp } from "../../servers/SmtpStub.ts"
import { startSlack } from "../../servers/SlackStub.ts"
import { startTelegram } from "../../servers/TelegramStub.ts"
import * as Deliveries from "../Deliveries.ts"

/** Outcomes of calls for a contact, by the last digit of its number. Otherwise calls are accepted. */
const outcomes = ["limited", "refused", "lost"] as const

export interface Delivery {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Provider {
  readonly channel: string
  /** The body that creates the agent's channel. */
  readonly account: object
  /** The delivery of one text of `contact`, a number; `id` is the provider's id of the message. */
  readonly text: (contact: string, id: number, text: string) => Delivery
  /** The delivery of a body, signed with the secret. */
  readonly signed: (body: string) => Delivery
  /** Texts that it accepted for a contact, in order. */
  readonly sent: (contact: string) => ReadonlyArray<string>
  /** The alias of a contact, if it differs from the number. */
  readonly alias?: (contact: string) => string
}

/** The number of a contact whose calls have this outcome: "limited" and "lost" for the first call, "refused" for all. */
export const contactOf = (outcome: (typeof outcomes)[number] | "taken", name: number): string =>
  `49170${String(name).padStart(5, "0")}${outcomes.findIndex((one) => one === outcome) + 1}`

const outcomeOf = (contact: string, call: number) => {
  const outcome = outcomes[Number(contact.at(-1)) - 1]
  if (outcome === undefined) return "taken"
  return outcome === "refused" || call === 1 ? outcome : "taken"
}

const secret = "app-secret-of-all-channels"
const bot = "4711:AAE-of-the-bot"
const page = "220700"
const app = "xoxb-of-the-app"
const signingSecret = "signing-secret-of-the-app"
const mailbox = "support@example.com"
const mailPassword = "password-of-the-mailbox"

const seconds = () => Math.floor(Date.now() / 1_000)

/** Starts all stubs. `variables` are the settings of a service that uses them. */
export const startProviders = async () => {
  const graph = await startGraph((_, call, to) => outcomeOf(to, call))
  const telegram = await startTelegram(outcomeOf)
  telegram.bots.set(bot, "helper_bot")
  const slack = await startSlack(outcomeOf)
  slack.apps.set(app, { team: "T1", user: "U1" })
  const slackSigned: Provider["signed"] = (body) => {
    const timestamp = String(seconds())
    const signature = createHmac("sha256", signingSecret).update(`v0:${timestamp}:${body}`).digest("hex")
    return {
      path: "/api/webhooks/slack/T1.U1",
      headers: { "x-slack-request-timestamp": timestamp, "x-slack-signature": `v0=${signature}` },
      body
    }
  }
  const smtp = await startSmtp((recipient, call) => outcomeOf(recipient.split("@", 1).join(""), call))
  smtp.users.set(mailbox, mailPassword)
  const mailAccount = createHash("sha256")
    .update(JSON.stringify(["127.0.0.1", mailbox, mailbox]))
    .digest("hex")
    .slice(0, 12)
  const emailSigned: Provider["signed"] = (body) => {
    const timestamp = String(seconds())
    const signature = createHmac("sha256", signingSecret).update(`${timestamp}.${body}`).digest("hex")
    return {
      path: `/api/webhooks/email/support_example.com.${mailAccount}`,
      headers: { "x-spoke-timestamp": timestamp, "x-spoke-signature": `v1=${signature}` },
      body
    }
  }
  const webhookSecret = createHmac("sha256", bot).update("spoke telegram webhook").digest("hex")

  const meta = (channel: "whatsapp" | "messenger", account: string): Pick<Provider, "signed" | "sent"> => ({
    signed: (body) => ({
      path: `/api/webhooks/${channel}`,
      headers: Deliveries.signatureHeader(secret, body),
      body
    }),
    sent: (contact) =>
      graph.taken.filter(({ path, to }) => to === contact && path.includes(account)).map(({ text }) => text)
  })
  const whatsapp = meta("whatsapp", "pn_1")
  const messenger = meta("messenger", page)
  const telegramSigned: Provider["signed"] = (body) => ({
    path: "/api/webhooks/telegram/4711",
    headers: { "x-telegram-bot-api-secret-token": webhookSecret },
    body
  })

  const providers: ReadonlyArray<Provider> = [
    {
      channel: "whatsapp",
      account: { channel: "whatsapp", externalId: "pn_1", accessToken: "EAAB-all" },
      ...whatsapp,
      text: (contact, id, text) =>
        whatsapp.signed(Deliveries.whatsappText({ from: contact, id: `wamid.${id}`, text }))
    },
    {
      channel: "messenger",
      account: { channel: "messenger", externalId: page, accessToken: `EAAB-all-${page}` },
      ...messenger,
      text: (contact, id, text) =>
        messenger.signed(
          JSON.stringify({
            object: "page",
            entry: [
              {
                id: page,
                messaging: [
                  {
                    sender: { id: contact },
                    recipient: { id: page },
                    timestamp: Date.now(),
                    message: { mid: `m_${id}`, text }
                  }
                ]
              }
            ]
          })
        )
    },
    {
      channel: "telegram",
      account: { channel: "telegram", accessToken: bot },
      signed: telegramSigned,
      text: (contact, id, text) =>
        telegramSigned(
          JSON.stringify({
            update_id: id,
            message: {
              message_id: id,
              date: seconds(),
              text,
              chat: { id: Number(contact), type: "private" },
              from: { id: Number(contact), is_bot: false, first_name: "Ada" }
            }
          })
        ),
      sent: (contact) =>
        telegram.taken
          .filter(({ body }) => String(body.chat_id) === contact)
          .map(({ body }) => String(body.text))
    },
    {
      channel: "slack",
      account: { channel: "slack", accessToken: app, secrets: { signingSecret } },
      signed: slackSigned,
      text: (contact, id, text) =>
        slackSigned(
          JSON.stringify({
            type: "event_callback",
            team_id: "T1",
            event_id: `Ev${id}`,
            event: {
              type: "message",
              channel_type: "im",
              channel: contact,
              user: "U2",
              text,
              ts: `${seconds()}.000${String(id).padStart(3, "0")}`
            }
          })
        ),
      sent: (contact) => slack.taken.filter(({ channel }) => channel === contact).map(({ text }) => text)
    },
    {
      channel: "email",
      account: {
        channel: "email",
        accessToken: mailPassword,
        secrets: { signingSecret },
        settings: { address: mailbox, server: smtp.url }
      },
      signed: emailSigned,
      text: (contact, id, text) =>
        emailSigned(
          JSON.stringify({
            raw: Buffer.from(
              [
                `From: Ada <${contact}@customers.example>`,
                `To: ${mailbox}`,
                `Message-ID: <${id}@customers.example>`,
                `References: <first.of.${contact}@customers.example>`,
                "Subject: Re: My order",
                "",
                text
              ].join("\r\n")
            ).toString("base64")
          })
        ),
      sent: (contact) =>
        smtp.taken
          .filter(({ to }) => to === `${contact}@customers.example`)
          .map(({ email }) => email.text ?? ""),
      alias: (contact) => {
        const first = `first.of.${contact}@customers.example`
        return `${createHash("sha256").update(first).digest("hex").slice(0, 16)}:${contact}@customers.example`
      }
    }
  ]
  return {
    providers,
    variables: {
      CHANNEL_APP_SECRET: secret,
      GRAPH_API_URL: graph.url,
      TELEGRAM_API_URL: telegram.url,
      SLACK_API_URL: slack.url,
      // The mail server of the channel.
      SPOKE_FETCH_ALLOW: `127.0.0.1:${smtp.port}`
    },
    close: () => {
      graph.close()
      telegram.close()
      slack.close()
      smtp.close()
    }
  }
}
