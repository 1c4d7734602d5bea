/** {@link Mailer} where no mail server is configured. */
import * as Layer from "effect/Layer"
import { Mailer, MailerError } from "../Mailer.ts"

export const layerNone = Layer.succeed(Mailer, {
  configured: false,
  send: () => new MailerError({ message: "No mail server is configured." })
})
