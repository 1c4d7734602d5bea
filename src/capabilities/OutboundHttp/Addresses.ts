/** {@link OutboundAddresses} by the rules for requests. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { urlOf } from "../../domain/Address.ts"
import { OutboundAddresses, OutboundHttpError } from "../OutboundHttp.ts"
import { type AllowList, refusal } from "./AddressRules.ts"
import { makeSystemResolver, resolve } from "./Destination.ts"

const invalid = () => new OutboundHttpError({ reason: "InvalidUrl", message: "The address names no host." })

export const layerAddresses = (options: { readonly allow: AllowList }) =>
  Layer.effect(
    OutboundAddresses,
    Effect.map(makeSystemResolver, (resolver) => ({
      of: (host, port) => {
        // Parsing as a URL normalizes the host as the rules expect.
        const url = urlOf(`http://${host}:${port}/`)
        return url === null
          ? Effect.fail(invalid())
          : Effect.map(resolve(resolver, options.allow, url), ({ addresses }) => ({
              addresses,
              internal: addresses.some((address) => refusal(address) !== null)
            }))
      }
    }))
  )
