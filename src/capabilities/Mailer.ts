/** Plain-text mails to people. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
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
