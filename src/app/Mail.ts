/** Mail out: of the service itself, and of tenants at mail servers of their own. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Addresses from "../capabilities/OutboundHttp/Addresses.ts"
import * as MailerNone from "../capabilities/Mailer/None.ts"
import * as Submission from "../capabilities/Mailer/Submission.ts"
import type { Settings } from "./config/Config.ts"

/** The client is loaded only where there is a mail server. */
export const mailer = ({ mail }: Settings) =>
  mail === null
    ? MailerNone.layerNone
    : Layer.unwrapEffect(
        Effect.map(
          Effect.promise(() => import("../capabilities/Mailer/Smtp.ts")),
          ({ layerSmtp }) => layerSmtp(mail)
        )
      )

/** At mail servers that customers choose. */
export const submission = <E, R>({ fetchAllow }: Settings, replace: Layer.Layer<never, E, R>) =>
  Submission.layerSubmission.pipe(
    Layer.provideMerge(Layer.merge(Addresses.layerAddresses({ allow: fetchAllow ?? [] }), replace))
  )
