/** Mails to people: the service's own, and those that go out at the mail servers of customers. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

export interface Mail {
  readonly to: string
  readonly subject: string
  readonly text: string
}

/** The mail server did not take the mail. `message` names neither address nor secret. */
export class MailerError extends Schema.TaggedError<MailerError>()("MailerError", {
  message: Schema.String
}) {}

export class Mailer extends Context.Tag("capabilities/Mailer")<
  Mailer,
  {
    /** False where no mail server is configured: `send` fails then. */
    readonly configured: boolean
    /** Hands the mail over and answers the id by which the server names it. Bounded in time. */
    readonly send: (mail: Mail) => Effect.Effect<{ readonly messageId: string }, MailerError>
  }
>() {}

/** A login at a mail server that a customer chose. */
export interface MailLogin {
  readonly host: string
  readonly port: number
  /** TLS from the first byte; otherwise STARTTLS, without which nothing is said. */
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
 * `Refused`: the server has surely not taken the mail; `retryable` says whether it may by itself. `Unknown`: the mail was on
 * its way when the connection broke. `message` names neither address nor secret.
 */
export class SubmissionError extends Schema.TaggedError<SubmissionError>()("SubmissionError", {
  reason: Schema.Literal("Refused", "Unknown"),
  message: Schema.String,
  retryable: Schema.Boolean
}) {}

/** Bounded in time; reaches what `OutboundAddresses` allows. */
export class MailSubmission extends Context.Tag("capabilities/MailSubmission")<
  MailSubmission,
  {
    /** Whether the server lets the user in; sends nothing. */
    readonly verify: (login: MailLogin) => Effect.Effect<void, SubmissionError>
    readonly submit: (login: MailLogin, mail: SubmittedMail) => Effect.Effect<void, SubmissionError>
  }
>() {}
