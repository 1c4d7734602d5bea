/** Outgoing e-mail: the service's own, and through mail servers of tenants. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Addresses from "../capabilities/OutboundHttp/Addresses.ts"
import * as MailerNone from "../capabilities/Mailer/None.ts"
import * as Submission from "../capabilities/Mailer/Submission.ts"
import type { Settings } from "./config/Config.ts"

/** The client is loaded only when a mail server is configured. */
export const mailer = ({ mail }: Settings) =>
  mail === null
    ? MailerNone.layerNone
    : Layer.unwrapEffect(
        Effect.map(
          Effect.promise(() => import("../capabilities/Mailer/Smtp.ts")),
          ({ layerSmtp }) => layerSmtp(mail)
        )
      )

/** For mail servers that customers choose. */
export const submission = <E, R>({ fetchAllow }: Settings, replace: Layer.Layer<never, E, R>) =>
  Submission.layerSubmission.pipe(
    Layer.provideMerge(Layer.merge(Addresses.layerAddresses({ allow: fetchAllow ?? [] }), replace))
  )
