/** {@link MailSubmission} by SMTP: one connection per mail, to an allowed address. */
import type MailComposer from "nodemailer/lib/mail-composer"
import type SMTPConnection from "nodemailer/lib/smtp-connection"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { isIP } from "node:net"
import { Readable } from "node:stream"
import { type MailLogin, MailSubmission, SubmissionError, type SubmittedMail } from "../Mailer.ts"
import { OutboundAddresses, type OutboundHttpError } from "../OutboundHttp.ts"
import { timeoutsMs } from "./Timeouts.ts"

/** Time-out of a mail, from the server's look-up to its answer. */
const submitTimeout = "20 seconds"

const refused = (message: string, retryable: boolean) =>
  new SubmissionError({ reason: "Refused", message, retryable })
const outcomeUnknown = () =>
  new SubmissionError({
    reason: "Unknown",
    message: "The connection to the mail server broke before its answer.",
    retryable: true
  })

const unreachable = ({ reason }: OutboundHttpError) =>
  reason === "Refused" || reason === "InvalidUrl"
    ? refused("The mail server has an address that this service may not connect to.", false)
    : refused("The mail server could not be found.", true)

/** The server's answer: 5xx is permanent, 4xx transient. */
const refusalOf = (cause: unknown): SubmissionError | null => {
  if (!Predicate.hasProperty(cause, "responseCode") || typeof cause.responseCode !== "number") return null
  const { responseCode: status } = cause
  return status < 400 ? null : refused(`The mail server refused it (${status}).`, status < 500)
}

/** Errors before any of the mail was sent. Permanent errors of the server stay permanent. */
const errorBeforeMessage = (cause: unknown): SubmissionError => {
  const code = Predicate.hasProperty(cause, "code") ? cause.code : undefined
  if (code === "EAUTH")
    return refusalOf(cause) ?? refused("The mail server refuses the user or the password.", false)
  if (code === "ETLS") return refused("The mail server offers no TLS that can be trusted.", false)
  if (code === "EMESSAGE") return refused("The mail is larger than the mail server accepts.", false)
  return refusalOf(cause) ?? refused("The mail server could not be reached.", true)
}

const libraries = Effect.promise(async () => ({
  Composer: (await import("nodemailer/lib/mail-composer")).default,
  Connection: (await import("nodemailer/lib/smtp-connection")).default
}))

const composeMail = (Composer: typeof MailComposer, mail: SubmittedMail) =>
  Effect.promise(() =>
    new Composer({
      from: mail.from,
      to: mail.to,
      subject: mail.subject,
      text: mail.text,
      messageId: `<${mail.messageId}>`,
      headers: { ...mail.headers },
      attachments: mail.files.map(({ bytes, mimeType, name }) => ({
        filename: name,
        contentType: mimeType,
        content: Buffer.from(bytes)
      })),
      disableFileAccess: true,
      disableUrlAccess: true
    })
      .compile()
      .build()
  )

/** The stream is read only when the server has asked for the message. */
const messageStream = (message: Buffer, onStart: () => void) =>
  Readable.from(
    (function* () {
      onStart()
      yield message
    })(),
    { objectMode: false }
  )

/** Runs one step of a connection. An error that belongs to no step also ends it. */
const step = (
  connection: SMTPConnection,
  failed: (cause: unknown) => SubmissionError,
  run: (done: (error?: unknown) => void) => void
) =>
  Effect.async<void, SubmissionError>((resume) => {
    const done = (error: unknown) => {
      connection.off("error", done)
      connection.off("end", ended)
      resume(error === undefined || error === null ? Effect.void : Effect.fail(failed(error)))
    }
    const ended = () => done({ code: "ECONNECTION" })
    connection.once("error", done)
    connection.once("end", ended)
    run(done)
  })

const make = Effect.gen(function* () {
  const addresses = yield* OutboundAddresses

  /** A logged-in connection, closed with the scope. */
  const openConnection = Effect.fn("MailSubmission.openConnection")(function* ({
    host,
    password,
    port,
    secure,
    user
  }: MailLogin) {
    const found = yield* Effect.mapError(addresses.of(host, port), unreachable)
    const { Connection } = yield* libraries
    const connection = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const opened = new Connection({
          host: found.addresses[0],
          port,
          secure,
          // A server in the operator's own network need not support TLS.
          requireTLS: !secure && !found.internal,
          ...(isIP(host) === 0 ? { servername: host, tls: { servername: host } } : {}),
          connectionTimeout: timeoutsMs.connection,
          greetingTimeout: timeoutsMs.greeting,
          socketTimeout: timeoutsMs.socket
        })
        // An error after its step has no listener, which would end the process.
        opened.on("error", () => {})
        return opened
      }),
      (opened) => Effect.sync(() => opened.close())
    )
    yield* step(connection, errorBeforeMessage, (done) => connection.connect(done))
    yield* step(connection, errorBeforeMessage, (done) =>
      connection.login({ credentials: { user, pass: Redacted.value(password) } }, done)
    )
    return connection
  })

  const verify = Effect.fn("MailSubmission.verify")(function* (login: MailLogin) {
    const connection = yield* openConnection(login)
    yield* Effect.sync(() => connection.quit())
  })

  const submit = Effect.fn("MailSubmission.submit")(function* (
    login: MailLogin,
    mail: SubmittedMail,
    progress: { messageStarted: boolean }
  ) {
    const { Composer } = yield* libraries
    const message = yield* composeMail(Composer, mail)
    const connection = yield* openConnection(login)
    const failed = (cause: unknown) =>
      refusalOf(cause) ?? (progress.messageStarted ? outcomeUnknown() : errorBeforeMessage(cause))
    yield* step(connection, failed, (done) =>
      connection.send(
        { from: mail.from, to: [mail.to], size: message.length },
        messageStream(message, () => (progress.messageStarted = true)),
        done
      )
    )
    yield* Effect.sync(() => connection.quit())
  })

  return {
    verify: (login: MailLogin) =>
      verify(login).pipe(
        Effect.scoped,
        Effect.timeoutFail({
          duration: submitTimeout,
          onTimeout: () => refused("The mail server did not answer in time.", true)
        })
      ),
    submit: (login: MailLogin, mail: SubmittedMail) =>
      Effect.suspend(() => {
        const progress = { messageStarted: false }
        return submit(login, mail, progress).pipe(
          Effect.scoped,
          Effect.timeoutFail({
            duration: submitTimeout,
            onTimeout: () =>
              progress.messageStarted
                ? outcomeUnknown()
                : refused("The mail server did not answer in time.", true)
          })
        )
      })
  }
})

/** Needs `OutboundAddresses`. */
export const layerSubmission = Layer.effect(MailSubmission, make)
