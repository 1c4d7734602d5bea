/** {@link Mailer} by SMTP: one connection per mail, with TLS if the server offers it. */
import { createTransport } from "nodemailer"
import type SMTPTransport from "nodemailer/lib/smtp-transport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { type Mail, Mailer, MailerError } from "../Mailer.ts"
import { timeoutsMs } from "./Timeouts.ts"

export interface SmtpOptions {
  /** `smtp://user:password@host:587` or `smtps://…:465`. */
  readonly url: Redacted.Redacted
  readonly from: string
}

/** Time-out of a mail, from the first byte to the server's answer. */
const sendTimeout = "20 seconds"
/** Maximum number of mails that are sent concurrently. */
const maxConnections = 4

/** Error codes of nodemailer. Its messages may contain addresses. */
const codeOf = (cause: unknown): string =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && /^E[A-Z]+$/u.test(cause.code)
    ? cause.code
    : "unknown"

const statusOf = (cause: unknown): string =>
  Predicate.hasProperty(cause, "responseCode") && typeof cause.responseCode === "number"
    ? `, ${cause.responseCode}`
    : ""

const failure = (cause: unknown) =>
  new MailerError({
    message: `The mail server did not accept the mail (${codeOf(cause)}${statusOf(cause)}).`
  })

const credentialsOf = (url: URL): SMTPTransport.Options["auth"] =>
  url.username === ""
    ? undefined
    : { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) }

const withTimeout = Effect.timeoutFail({
  duration: sendTimeout,
  onTimeout: () => new MailerError({ message: "The mail server did not answer in time." })
})

/** Only host, port and account are used. Other options in the URL (a proxy, a log) are ignored. */
const transportOf = (url: URL) =>
  createTransport({
    host: url.hostname.replace(/^\[|\]$/gu, ""),
    port: url.port === "" ? (url.protocol === "smtps:" ? 465 : 587) : Number(url.port),
    secure: url.protocol === "smtps:",
    ...(url.username === "" ? {} : { auth: credentialsOf(url) }),
    connectionTimeout: timeoutsMs.connection,
    greetingTimeout: timeoutsMs.greeting,
    socketTimeout: timeoutsMs.socket,
    dnsTimeout: timeoutsMs.dns,
    disableFileAccess: true,
    disableUrlAccess: true
  })

const openTransport = (url: Redacted.Redacted) =>
  Effect.acquireRelease(
    Effect.sync(() => transportOf(new URL(Redacted.value(url)))),
    (transport) => Effect.sync(() => transport.close())
  )

/** The server's id for the mail, if it reports one. Its provider's events use that id. */
const queueIdOf = (response: string): string | undefined => /\bqueued as ([\w-]{1,200})/iu.exec(response)?.[1]

/** Checks that the server accepts the login. Sends nothing. */
export const verify = (url: Redacted.Redacted) =>
  Effect.flatMap(openTransport(url), (transport) =>
    Effect.tryPromise({
      try: () => transport.verify(),
      catch: (cause) =>
        new MailerError({
          message: `The mail server refused the login (${codeOf(cause)}${statusOf(cause)}).`
        })
    })
  ).pipe(Effect.scoped, withTimeout)

export const layerSmtp = ({ from, url }: SmtpOptions) =>
  Layer.scoped(
    Mailer,
    Effect.gen(function* () {
      const permits = yield* Effect.makeSemaphore(maxConnections)
      const transport = yield* openTransport(url)
      const send = ({ id, subject, text, to }: Mail) =>
        Effect.gen(function* () {
          const messageId = `${id}@spoke`
          const { response } = yield* Effect.tryPromise({
            try: () => transport.sendMail({ from, to, subject, text, messageId: `<${messageId}>` }),
            catch: failure
          }).pipe(withTimeout)
          return { messageId: queueIdOf(response) ?? messageId }
        }).pipe(permits.withPermits(1), Effect.withSpan("Mailer.send"))
      return { configured: true, send }
    })
  )
