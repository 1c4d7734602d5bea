/** Mails to people: the service's own, and those sent through mail servers of customers. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

export interface Mail {
  /** Becomes the Message-ID. The same mail, sent again, has the same id, so that mail systems can drop duplicates. */
  readonly id: string
  readonly to: string
  readonly subject: string
  readonly text: string
}

/** The mail server did not accept the mail. `message` contains neither address nor secret. */
export class MailerError extends Schema.TaggedError<MailerError>()("MailerError", {
  message: Schema.String
}) {}

export class Mailer extends Context.Tag("capabilities/Mailer")<
  Mailer,
  {
    /** False if no mail server is configured. `send` fails then. */
    readonly configured: boolean
    /** Sends the mail and returns the id that the server uses for it. Has a time-out. */
    readonly send: (mail: Mail) => Effect.Effect<{ readonly messageId: string }, MailerError>
  }
>() {}

/** Credentials at a mail server chosen by a customer. */
export interface MailLogin {
  readonly host: string
  readonly port: number
  /** TLS from the first byte. Otherwise STARTTLS is required before anything else is sent. */
  readonly secure: boolean
  readonly user: string
  readonly password: Redacted.Redacted
}

export interface SubmittedMail {
  readonly from: string
  readonly to: string
  readonly subject: string
  readonly text: string
  /** Without angle brackets. */
  readonly messageId: string
  readonly headers: Readonly<Record<string, string>>
  readonly files: ReadonlyArray<{
    readonly name: string
    readonly mimeType: string
    readonly bytes: Uint8Array
  }>
}

/**
 * `Refused`: the server has certainly not accepted the mail; `retryable` says whether a retry may succeed. `Unknown`:
 * the connection was lost while the mail was being sent. `message` contains neither address nor secret.
 */
export class SubmissionError extends Schema.TaggedError<SubmissionError>()("SubmissionError", {
  reason: Schema.Literal("Refused", "Unknown"),
  message: Schema.String,
  retryable: Schema.Boolean
}) {}

/** Has a time-out, and connects only to addresses that `OutboundAddresses` allows. */
export class MailSubmission extends Context.Tag("capabilities/MailSubmission")<
  MailSubmission,
  {
    /** Checks that the server accepts the login. Sends nothing. */
    readonly verify: (login: MailLogin) => Effect.Effect<void, SubmissionError>
    readonly submit: (login: MailLogin, mail: SubmittedMail) => Effect.Effect<void, SubmissionError>
  }
>() {}
