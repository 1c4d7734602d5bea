import * as Schema from "effect/Schema"
import { isLocalHost, urlOf } from "./Address.ts"
import { Text } from "./Text.ts"

/** Address of an identity provider or authorization server. Must be https; http is allowed for a provider on this machine only. */
export const Issuer = Text.pipe(
  Schema.compose(Schema.Trim),
  Schema.maxLength(2_048),
  Schema.filter((text) => {
    const url = urlOf(text)
    const plain = url !== null && !/[?#@\s\\]/.test(text)
    return (
      (plain && (url.protocol === "https:" || (url.protocol === "http:" && isLocalHost(url.hostname)))) ||
      "Expected the provider's https address, without a query"
    )
  })
)
